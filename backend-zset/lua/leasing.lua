-- How a claim names its leases. Needs relq-redis's entry.lua.

-- Returns the new entry of an element as {id, entry, kind, lease (ms)}: several
-- results, which need no table. This function handles the common case, a job without
-- options on its first delivery.
local function lease_fresh(element, lease_ms)
  local id_bytes = element:byte(11) or 0
  if element:sub(1, 8) ~= '\245RQ\1\0\5\0\0' or element:sub(9, 10) == '\0\0'
    or id_bytes == 0 or #element < 11 + id_bytes then return nil end
  return element:sub(12, 11 + id_bytes), element, 'p', lease_ms
end

-- Numbers as text, from lookup tables: converting each number would cost more than the
-- rest of its lease's name. Numbers begin at 10001, so that the leases of one claim
-- sort by them.
local DIGITS = {[0] = '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'}
local function number_of(i)
  local rest = i % 1000
  local hundreds, ones = (rest - rest % 100) / 100, rest % 10
  local tens = (rest - hundreds * 100 - ones) / 10
  return (i < 1000 and '10' or '11') .. DIGITS[hundreds] .. DIGITS[tens] .. DIGITS[ones]
end
