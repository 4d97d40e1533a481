-- usual.lua: the usual call of take.lua, without most of what that stands on, which costs more to set up than a few charges
-- cost to make. It stands behind refill.lua and before the rest of take.lua. A call that has anything unusual about it is
-- left to that, with nothing done; any other is answered as that would, but for groups that are charged more than once:
-- their charges are answered once, 16 and how many times there was room, then spent and aux after the last.
--
-- Usual are charges that are no look and no refund, of groups that have not failed elsewhere and have no shadow; sets of
-- one limit without a name, debt or a calendar, that does not slide; and buckets that are absent, or as the last charge
-- under the same limit left them, in the short form and not in the future.

local SHORT = '>BI6I4BI4I4I3I5' -- as state.lua says

-- plain reads ARGV[2], or returns nil: a usual set takes 41 bytes.
local function plain(text)
  local list = {}
  if #text % 41 > 0 or now >= 2^52 then return nil end
  for i = 1, #text / 41 do
    local count, mode, name, per, tokens, burst, unit, step = unpack('>BBI4I7I7I7I7I7', text, i * 41 - 40)
    if count ~= 1 or mode > 3 or name > 0 or tokens == 0 or per >= 2^32 or tokens >= 2^32 then return nil end
    list[i] = {mode = mode, per = per, us = per * 1000, tokens = tokens, burst = burst, unit = unit, step = step}
  end
  return list
end

-- read returns what value lacks of l now, nil if it is not usual.
local function read(value, l)
  if #value ~= 28 then return nil end
  local first, rest, ms, mode, per, tokens, spent, aux = unpack(SHORT, value)
  local passed = now - (first - 128) * 2^48 - rest
  if first < 128 or first >= 144 or mode ~= l.mode or per ~= l.per or tokens ~= l.tokens or aux >= l.us or passed < 0 then
    return nil
  end
  if passed >= ms * 1000 then return 0, 0 end
  return refill(l, min(spent, l.burst), aux, passed)
end

-- store sets what buckets lack that were charged, or returns false with nothing done if one is not usual then.
local function store(buckets)
  local top, low = 128 + floor(now / 2^48), now % 2^48
  for k = 1, #buckets do
    local b = buckets[k]
    if b[4] then
      local l, spent, aux = b[1], b[2], b[3]
      local ms = ceil(wait(l, spent, aux), 1000)
      if ms == 0 or ms >= 2^32 or spent >= 2^24 or aux >= 2^40 then return false end
      b[4], b[5] = pack(SHORT, top, low, ms, l.mode, l.per, l.tokens, spent, aux), expires + ms
    end
  end
  for k = 1, #buckets do
    local b = buckets[k]
    if b[4] then
      call('SET', KEYS[k], b[4], 'PXAT', string.format('%d%03d', floor(b[5] / 1000), b[5] % 1000)) -- each below 2^31
    end
  end
  return true
end

local function usual()
  local sets, text = plain(ARGV[2]), ARGV[3]
  if not sets or #text > 8000 then return nil end
  -- Five numbers for each charge, and last one that is not 0. Those of charges that are made give room for the reply.
  local charges = {unpack('>' .. string.rep('BI4I4i7B', #text / 17), text)}
  local at, last, n, absent = 1, #charges, 1
  -- Of each bucket, once it is read: its set, spent, aux, and whether it was charged. Places are given as keys come.
  local buckets, known = call('MGET', spread(KEYS)), 0
  while at < last do
    if charges[at] ~= 1 then return nil end
    local first, passed = at, charges[at + 4]
    repeat
      local k, l, cost = charges[at + 1], sets[charges[at + 2]], charges[at + 3]
      local b, spent, aux = buckets[k], 0, 0
      if k > known then
        if b then
          spent, aux = read(b, l)
          if not spent then return nil end
        else
          absent = absent or {}
          absent[#absent + 1] = KEYS[k]
        end
        b = {l, spent, aux, false, 0}
        buckets[k], known = b, known + 1
      end
      if cost <= 0 or b[1] ~= l then return nil end
      at = at + 5
      if passed * cost > l.burst - b[2] then passed = floor((l.burst - b[2]) / cost) end
    until charges[at] ~= 0
    local times = charges[first + 4]
    for c = first, at - 1, 5 do
      local b, cost, status = buckets[charges[c + 1]], charges[c + 3], 0
      local l = b[1]
      if passed > 0 then
        if l.mode == 2 then b[2], b[3] = capped(l, b[2], b[3]) end
        b[2], b[4], status = b[2] + passed * cost, true, 1
      elseif cost <= l.burst - b[2] then
        status = 2
      end
      if times > 1 then status = 16 + passed end
      charges[n + 1], charges[n + 2], charges[n + 3], n = status, b[2], b[3], n + 3
    end
  end
  if absent and call('EXISTS', spread(absent)) > 0 then return nil end -- one is of another type
  if not store(buckets) then return nil end
  charges[1], charges[n + 1] = now, nil
  return charges
end

local answered = usual()
if answered then return answered end

