#!lua flags=no-writes
-- List the leases and sessions that recovery must check.
--
-- KEYS[1] leased   ZSET  lease -> end (ms)
-- KEYS[2] workers  ZSET  session -> end of its last lease (ms)
-- KEYS[3] retired  ZSET  session that ended -> until when its list is watched (ms)
-- ARGV[1] how many leases at most
-- ARGV[2] how many sessions of each kind at most
--
-- Returns {{expired leases, the latest end first}, {active sessions, the earliest end
-- first}, {retired sessions, the earliest end first}}.
--
-- Library: entry
local leased, workers, retired = KEYS[1], KEYS[2], KEYS[3]
local page, sessions = tonumber(ARGV[1]), tonumber(ARGV[2])

return {
  redis.call('ZRANGE', leased, server_ms(), '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, page),
  redis.call('ZRANGE', workers, 0, sessions - 1),
  redis.call('ZRANGE', retired, 0, sessions - 1),
}
