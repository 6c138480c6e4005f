//! Queues on one store are independent (R19), and a job that a client pushes without
//! relq is a job like any other (R20).

mod plain;
mod queues;
mod twins;
