-- undo.lua: give back what was charged for groups that failed in another slot. It follows state.lua, and so do KEYS
-- and ARGV 1 and 2. Each key is charged by one record at most.
--
-- ARGV  3  the records, packed: key I4 and set I4 (places, from 1), cost I7, when it was charged I7, then as take.lua
--          answered what is to be put back and what it stored, each after its length I4
-- Reply now
--
-- Where nobody has charged the bucket since, what was there before is put back: it is as if the charge had never been
-- made. Otherwise the bucket lacks tokens of others too, and how it would stand without ours cannot be known. While ours
-- were missing, tokens came back for them that may have found the bucket full without them, at most all that came: so the
-- cost less those is given back, never below 0. A period that began with our charge would have begun with another's,
-- between then and now: it begins now. Under limits that have changed meanwhile, or a calendar in another period than
-- ARGV 2 says, nothing is given back. So never more is admitted than if the charge had been made and kept, or never been
-- made.

-- restore puts value back, to expire when it would have.
local function restore(k, value)
  if value == '' then return call('DEL', KEYS[k]) end
  local wide, at, ms, _ = byte(value) % 32 >= 16
  if wide then
    _, at, ms = unpack(WIDE_HEAD, value)
  else
    _, at, ms = unpack(HEAD, value)
    at = at + byte(value) % 16 * 2^48
  end
  local rest = floor((at - now) / 1000) + ms
  if rest < 0 and ARGV[1] ~= '' then rest = 0 end -- that clock may have been set by far
  call('SET', KEYS[k], value, 'PXAT', expires + rest)
end

-- same says that values[k] is of the limits of set.
local function same(k, set)
  local format, stride, count = form(values[k])
  if not format or count ~= #set then return false end
  local f = {unpack(format, values[k])}
  for i = 1, count do
    local j = 4 + (i - 1) * stride
    local mode = f[j] > 4 and f[j] * 2 - 10 or f[j] -- whatever is leased
    if mode ~= set[i].mode or f[j + 1] ~= set[i].per or f[j + 2] ~= set[i].tokens then return false end
  end
  return true
end

-- less returns spent and aux, of parts of which a token has unit and aux of which are there, less so many parts.
local function less(spent, aux, unit, parts)
  local lacks = spent * unit - aux - parts
  if lacks <= 0 then return 0, 0 end
  spent = ceil(lacks, unit)
  return spent, spent * unit - lacks
end

-- give returns spent and aux of a limit after cost, charged passed µs ago, is given back.
local give = {
  [0] = function(l, spent, aux, cost, passed)
    local parts = cost * l.unit - passed * l.step
    if parts <= 0 then return spent, aux end
    return less(spent, aux, l.unit, parts)
  end,
  [1] = function(l, spent, aux, cost, passed)
    -- The ends of periods since: the running one began aux ago.
    if passed > aux then cost = cost - (floor((passed - aux - 1) / l.us) + 1) * l.tokens end
    if passed >= aux and (passed - aux) % l.us == 0 then aux = 0 end
    if cost <= 0 then return spent, aux end
    if cost >= spent then return 0, 0 end
    return spent - cost, aux
  end,
  [2] = function(l, spent, aux, cost, passed)
    -- A tick that ran at the charge may have ended, and a part of one been counted early.
    local ticks = passed > 0 and floor(passed / 1000) + 1 or 0
    local parts, phase = cost * l.unit - ticks * l.step, aux % 1000
    if parts <= 0 then return spent, aux end
    spent, aux = less(spent, (aux - phase) / 1000, l.unit, parts)
    if spent == 0 then return 0, 0 end
    return spent, aux * 1000 + phase
  end,
  [3] = function(l, spent, aux, cost, passed)
    cost = cost - begun(l, passed) * l.tokens
    if cost <= 0 then return spent, aux end
    return spent > cost and spent - cost or 0, 0
  end,
  [4] = function(l, spent, aux, cost, passed, log)
    if passed >= l.us then return spent, aux end
    -- Ours is in the first entry that is no older.
    local i = 1
    while log[i] and log[i] < now - passed do i = i + 2 end
    if not log[i] then return spent, aux end
    cost = min(cost, log[i + 1])
    log[i + 1] = log[i + 1] - cost
    if log[i + 1] == 0 then
      table.remove(log, i)
      table.remove(log, i)
      if i > #log then aux = l.slot end -- and its slot has ended with it
    end
    if spent == cost then return 0, 0 end
    return spent - cost, aux
  end,
}

-- giveBack gives cost back that was charged at.
local function giveBack(k, set, cost, at)
  if not values[k] or at > now or not same(k, set) then return end
  settle(k, set)
  if foreign[k] then return end
  local lacks = state[k]
  for i = 1, #set do
    local spent, back = lacks[2 * i - 1], give[set[i].mode]
    if spent > 0 then
      lacks[2 * i - 1], lacks[2 * i] = back(set[i], spent, lacks[2 * i], cost, now - at, set.slides and lacks.logs[i])
    end
  end
  left[k], charged[k] = lacks, set
  write(k)
end

fetch()
local text, list, at = ARGV[3], sets(ARGV[2]), 1
while at <= #text do
  local k, s, cost, when, old, new
  k, s, cost, when, old, new, at = unpack('>I4I4I7I7I4c0I4c0', text, at)
  if foreign[k] then
    -- It is no bucket any more.
  elseif (values[k] or '') == new then
    restore(k, old)
  elseif not stale then
    giveBack(k, list[s], cost, when)
  end
end
return {now}
