//! Queues on one store are independent, and jobs of plain producers count (R19, R20).

mod plain;
mod queues;
