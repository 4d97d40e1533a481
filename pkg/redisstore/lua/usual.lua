-- usual.lua: the usual call of take.lua, without most of what that stands on, which costs more to set up than a few charges
-- cost to make. It stands behind refill.lua and before the rest of take.lua. A call that has anything unusual about it is
-- left to that, with nothing done; any other is answered as that would, but for groups that are charged more than once:
-- their charges are answered once, 16 and how many times there was room, then spent and aux after the last.
--
-- Usual are charges that are no look and no refund, of groups that have not failed elsewhere and have no shadow; sets of
-- one limit without a name, debt or a calendar, that does not slide; and buckets that are absent, or as the last charge
-- under the same limit left them, in the short form and not in the future.
--
-- What greedy limits in µs lack is worked out here, and few functions are made: each costs a call as much as that does.

-- list returns the numbers in text, which has so many bytes for each time that format fits.
local function list(format, size, text)
  if #text > size then format = string.rep(format, #text / size) end
  return {unpack(format, text)}
end

-- plain reads ARGV[2], or returns nil: a usual set takes 41 bytes.
local function plain(text)
  if #text % 41 > 0 or now >= 2^52 then return nil end
  local sets, n = list('>BBI4I7I7I7I7I7', 41, text), 0
  for i = 1, #sets - 1, 8 do
    local mode, per, tokens = sets[i + 1], sets[i + 3], sets[i + 4]
    if sets[i] ~= 1 or mode > 3 or sets[i + 2] > 0 or tokens == 0 or per >= 2^32 or tokens >= 2^32 then return nil end
    if mode > 0 and not refill then sums() end
    n = n + 1
    sets[n] = {mode = mode, per = per, us = per * 1000, tokens = tokens, burst = sets[i + 5], unit = sets[i + 6], step = sets[i + 7]}
  end
  return sets
end

-- fetch returns what is stored under keys, or false if one is of another type. GET alone costs less, and tells.
local function fetch(keys)
  if #keys == 1 then return {redis.pcall('GET', keys[1])} end
  local values, absent = call('MGET', spread(keys))
  for k = 1, #keys do
    if not values[k] then
      absent = absent or {}
      absent[#absent + 1] = keys[k]
    end
  end
  return (not absent or call('EXISTS', spread(absent)) == 0) and values
end

local function usual()
  local keys, text = KEYS, ARGV[3]
  if #text > 8000 then return nil end -- unpack returns so many numbers at most, and there are no more sets than charges
  local sets = plain(ARGV[2])
  if not sets then return nil end
  -- Five numbers for each charge: flags, 1 if it begins a group and 0 if it is of the same as the one before, key, set,
  -- cost and times; and last one that is not 0. Once it is read, what its bucket lacks takes the place of the first and the
  -- last, spent and aux; once it is made, the reply takes that of charges before it, since that has three for each.
  local charges, values = list('>BI4I4i7B', 17, text), fetch(keys)
  if not values then return nil end
  local SHORT, pack, unpack = '>BI6I4BI4I4I3I5', pack, unpack -- as state.lua says
  local top, low, at, last, n, count = 128 + floor(now / 2^48), now % 2^48, 1, #charges, 1, #keys
  -- What is charged is put into values at once, for groups behind to find it there, and its ms to full behind all values.
  -- Nothing is stored before all groups are done, so up to then each may leave the call to the rest of take.lua.
  while at < last do
    if charges[at] ~= 1 then return nil end
    local first, times = at, charges[at + 4]
    local passed = times
    repeat -- what each charge of the group finds, and how many times all of them have room
      local value, l, cost, spent, aux = values[charges[at + 1]], sets[charges[at + 2]], charges[at + 3], 0, 0
      if value then
        if #value ~= 28 then return nil end
        local head, rest, ms, mode, per, tokens, before, parts = unpack(SHORT, value)
        local since, unit = low - rest, l.unit
        if head ~= top or mode ~= l.mode or per ~= l.per or tokens ~= l.tokens or parts >= l.us or since < 0 then return nil end
        if before > l.burst then before = l.burst end
        if mode > 0 then
          if since < ms * 1000 then spent, aux = refill(l, before, parts, since) end
        else -- as refill does
          parts = parts + since * l.step
          if since < ms * 1000 and parts < before * unit then
            aux = parts % unit
            spent = before - (parts - aux) / unit
          end
        end
      end
      if cost <= 0 then return nil end
      if passed * cost > l.burst - spent then passed = floor((l.burst - spent) / cost) end
      charges[at], charges[at + 4], at = spent, aux, at + 5
    until charges[at] ~= 0
    for c = first, at - 1, 5 do -- makes the charges so many times, and answers
      local spent, k, l, cost, aux, status = charges[c], charges[c + 1], sets[charges[c + 2]], charges[c + 3], charges[c + 4], 0
      if passed > 0 then
        if l.mode == 2 then spent, aux = capped(l, spent, aux) end
        spent, status = spent + passed * cost, 1
        -- us is one less than wait says, so that ms, 1 more than the whole ones in it, is rounded up.
        local us, step = spent * l.unit - aux - 1, l.step
        us = l.mode > 0 and wait(l, spent, aux) - 1 or (us - us % step) / step
        local ms = (us - us % 1000) / 1000 + 1
        if ms < 1 or ms >= 2^32 or spent >= 2^24 or aux >= 2^40 then return nil end
        values[k], values[count + k] = pack(SHORT, top, low, ms, l.mode, l.per, l.tokens, spent, aux), ms
      elseif cost <= l.burst - spent then
        status = 2
      end
      if times > 1 then status = 16 + passed end
      charges[n + 1], charges[n + 2], charges[n + 3], n = status, spent, aux, n + 3
    end
  end
  local margin = ARGV[1] == '' and 2 or 60 -- in seconds, as ms is rounded down
  for k = 1, count do
    local ms = values[count + k]
    if ms then call('SET', keys[k], values[k], 'EX', string.format('%d', (ms - ms % 1000) / 1000 + margin)) end -- below 2^31
  end
  charges[1], charges[n + 1] = now, nil
  return charges
end

local answered = usual()
if answered then return answered end

