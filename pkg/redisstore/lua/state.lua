-- state.lua: the buckets under KEYS: read, charged and written. It stands behind refill.lua, sliding.lua and leases.lua and
-- before the text of every script here, and does nothing by itself.
--
-- KEYS  the buckets, each once
-- Value B 128 + flags (16 wide, 32 named, 64 with logs) + the top 4 bits of at, I6 the rest of at in µs, I4 the ms from
--       then to full; then for each limit mode B, period in ms I4, tokens I4, spent I3, aux I5, and where named the name
--       I4. With logs there follow, for each sliding limit, how many entries it has (B) and of each how many µs before at
--       I5 and its tokens I3; and last the number of limits B. A greedy limit of which there are leases has the mode 5, in
--       ticks of 1 ms 6, and a log of how many µs after at they end.
--       Wide: at is not in the first byte, and takes I7 as every number but mode, name and the B does
--
-- An absent key is a full bucket; a key expires a margin after it is full, 1 s (after a usual call, up to 2) or, under a
-- clock that is not the server's, up to 60 s.

local EXACT, CENTURY = 2^53, 36500 * 86400000
local HEAD, LIMIT, ONE, NAME, ENTRY = '>BI6I4', 'BI4I4I3I5', '>BI6I4BI4I4I3I5', 'I4', 'I5I3'
local WIDE_HEAD, WIDE_LIMIT, WIDE_ENTRY = '>BI7I7', 'BI7I7I7I7', 'I7I7'

local top = floor(now / 2^48)
local low = now - top * 2^48

-- Of the bucket under KEYS[k]: values[k] is what is stored or false; ahead[k] its ms to full where it is from the future;
-- state[k] is what it lacks now under the set under[k], spent and aux for each limit, in logs those of the limits that
-- slide by their place, and lease if there are leases; left[k] and charged[k] are the same as the last charge left them.
local values, foreign, ahead, keep = {}, {}, {}, {}
local state, under, left, charged = {}, {}, {}, {}

local stale = false

local expires = floor(now / 1000) + 1000 -- in ms: when a key is to go whose bucket is full now
if ARGV[1] ~= '' then
  local time = call('TIME')
  expires = time[1] * 1000 + floor(time[2] / 1000) + 60000
end

if not refill then sums() end

-- calendar reads when the periods of l begin, and returns where that ends.
local function calendar(l, text, at)
  local n
  n, at = unpack('>B', text, at)
  l.starts = {unpack('>' .. string.rep('i7', 2 * n), text, at)}
  at = table.remove(l.starts)
  if l.starts[n] > now or l.starts[n + 1] <= now then stale = true end
  return at
end

-- sets reads ARGV[2].
local function sets(text)
  local list, at = {}, 1
  while at <= #text do
    local set, count, flags = {}
    count, at = unpack('>B', text, at)
    local l
    for i = 1, count do
      l = {}
      flags, l.name, l.per, l.tokens, l.burst, l.unit, l.step, at = unpack('>BI4I7I7I7I7I7', text, at)
      l.mode, l.us, l.most = flags % 16, l.per * 1000, l.burst
      l.large = l.per >= 2^32 or l.tokens >= 2^32
      if flags % 32 >= 16 then
        l.most, at = unpack('>I7', text, at)
        set.debt = true
      end
      if flags >= 32 then at = calendar(l, text, at) end
      if l.mode == 4 then
        l.slot, l.large, set.slides = ceil(l.us, 64), l.large or l.us >= 2^40, true
        slides = slides or sliding()
      end
      set[i], set.closed = l, set.closed or l.tokens == 0
    end
    -- One greedy limit in µs is the usual set. For that much is written out below, which costs the most there.
    set.usual = count == 1 and l.mode == 0 and not set.debt and not set.closed
    list[#list + 1] = set
  end
  return list
end

-- pay returns spent and aux with cost more spent, up to empty beside what is leased, or to full.
local function pay(l, spent, aux, cost, log, leased)
  if l.mode == 4 then
    if cost > 0 then return slides.add(l, log, spent, aux, cost) end
    return slides.giveBack(l, log, spent, aux, -cost)
  end
  if l.mode == 2 then spent, aux = capped(l, spent, aux) end
  spent = spent + cost
  if spent <= 0 then return 0, 0 end
  if spent > l.most - leased then spent = l.most - leased end
  return spent, aux
end

-- leased returns how many tokens are leased of limit i.
local function leased(lacks, i)
  local log = lacks.lease
  return log and log.limit == i and log.sum or 0
end

-- sane says that these are numbers that a limit can have.
local function sane(mode, per, tokens, spent, aux)
  return mode <= 6 and per > 0 and per <= CENTURY and tokens < EXACT and spent < EXACT and aux < per * 1000
end

-- adopt returns spent, aux and log, written under mode, per and tokens, as l has them after passed µs.
local function adopt(l, passed, mode, per, tokens, spent, aux, log)
  if l.mode == 4 then return slides.slide(l, passed, mode, per, spent, aux, log) end
  if spent > l.most then spent = l.most end
  if mode ~= l.mode or per ~= l.per or (mode ~= 1 and tokens ~= l.tokens) then aux = 0 end
  return refill(l, spent, aux, passed)
end

-- adoptLeased is adopt where there are leases.
local function adoptLeased(l, passed, mode, per, tokens, spent, aux, log)
  mode = mode * 2 - 10
  if l.mode ~= 0 and l.mode ~= 2 then return adopt(l, passed, mode, per, tokens, spent + log.sum, aux, {}) end
  if mode ~= l.mode or per ~= l.per or tokens ~= l.tokens then aux = 0 end
  return leases.settle(l, passed, spent, aux, log)
end

-- match returns for each limit of set the place in f of what it goes on from, or nil: by name, else period, else place.
local function match(set, f, stride, count)
  local from, taken = {}, {}
  local function pass(fits)
    for i = 1, #set do
      for j = 1, count do
        if not from[i] and not taken[j] and fits(set[i], f[4 + (j - 1) * stride + 1], stride == 6 and f[4 + j * stride - 1], i == j) then
          from[i], taken[j] = 4 + (j - 1) * stride, true
        end
      end
    end
  end
  pass(function(l, _, name) return l.name > 0 and l.name == name end)
  pass(function(l, per) return l.per == per end)
  pass(function(_, _, _, same) return same end)
  return from
end

-- elapsed returns the µs since at, or nil if the bucket is full since: it was so ms after at.
local function elapsed(k, at, ms)
  if at > now then
    ahead[k] = ms
    return 0
  end
  if now < at + ms * 1000 then return now - at end
end

-- none is the state of a full bucket.
local function none(set)
  local lacks = {}
  for i = 1, 2 * #set do lacks[i] = 0 end
  if set.slides then
    lacks.logs = {}
    for i = 1, #set do lacks.logs[i] = {} end
  end
  return lacks
end

-- form returns how value is laid out: its format, the fields of a limit, the limits, whether it is wide and where its logs
-- begin; or nil.
local function form(value)
  local first = byte(value) or 0
  if first < 128 then return nil end
  local wide, stride = first % 32 >= 16, 5
  local head, limit, length, size = HEAD, LIMIT, 11, 17
  if wide then head, limit, length, size = WIDE_HEAD, WIDE_LIMIT, 15, 29 end
  if first % 64 >= 32 then limit, size, stride = limit .. NAME, size + 4, 6 end
  local count = (#value - length) / size
  if first >= 192 then
    if byte(value, -1) >= count then return nil end -- the logs take room too
    count = byte(value, -1)
  end
  if count < 1 or count > 16 or count ~= floor(count) or (wide and first % 16 > 0) then return nil end
  return head .. string.rep(limit, count), stride, count, wide, first >= 192 and length + count * size + 1
end

-- logs returns the logs in value by the place of their limits, or nil if they are none of ours. They begin at a place.
local function logs(value, f, stride, count, wide, at, place)
  local all, format, size = {}, ENTRY, 8
  if wide then format, size = WIDE_ENTRY, 14 end
  for j = 4, 3 + count * stride, stride do
    if f[j] >= 4 then
      local n = byte(value, place)
      if place + n * size >= #value then return nil end
      local log = {unpack('>' .. string.rep(format, n), value, place + 1)}
      log[#log] = nil -- where it ends
      if f[j] == 4 then
        slides = slides or sliding()
        all[j] = slides.entries(log, at, f[j + 1] * 1000, f[j + 3])
      elseif not all.lease then
        leases = leases or leasing()
        all[j], all.lease = leases.entries(log, at), true
      end
      if not all[j] then return nil end
      place = place + 1 + n * size
    end
  end
  return place == #value and all
end

-- decode returns the state under set that values[k] is now, or nil if it is none of ours.
local function decode(k, set)
  local format, stride, count, wide, place = form(values[k])
  if not format then return nil end
  local f = {unpack(format, values[k])}
  local at, kept = wide and f[2] or f[1] % 16 * 2^48 + f[2], {}
  if at >= EXACT or f[3] > CENTURY + 4e6 then return nil end
  for j = 4, 3 + count * stride, stride do
    if not sane(f[j], f[j + 1], f[j + 2], f[j + 3], f[j + 4]) or (f[j] >= 4 and not place) then return nil end
  end
  if place then kept = logs(values[k], f, stride, count, wide, min(at, now), place) end
  if not kept then return nil end
  local passed, lacks, from = elapsed(k, at, f[3]), none(set), match(set, f, stride, count)
  if not passed then return lacks end
  for i = 1, #set do
    local j, log = from[i]
    if j then
      local adopt = f[j] > 4 and adoptLeased or adopt
      lacks[2 * i - 1], lacks[2 * i], log = adopt(set[i], passed, f[j], f[j + 1], f[j + 2], f[j + 3], f[j + 4], kept[j])
      if log and set[i].mode == 4 then
        lacks.logs[i] = log
      elseif log then
        lacks.lease, log.limit = log, i
      end
    end
  end
  return lacks
end

-- decodeOne is decode for a value as long as the usual one, which has one limit, is narrow, without a name and a log.
local function decodeOne(k, set)
  local first, rest, ms, mode, per, tokens, spent, aux = unpack(ONE, values[k])
  local l = set[1]
  if set.usual and mode == 0 and per == l.per and tokens == l.tokens and first >= 128 and first < 144 and aux < l.us then
    local passed = now - (first - 128) * 2^48 - rest
    if passed >= 0 then
      if passed >= ms * 1000 then return {0, 0} end
      return {refill(l, min(spent, l.most), aux, passed)}
    end
  end
  if first < 128 or first >= 144 or mode >= 4 or set.slides then return decode(k, set) end
  if not sane(mode, per, tokens, spent, aux) then return nil end
  local passed = elapsed(k, (first - 128) * 2^48 + rest, ms)
  if not passed then return {0, 0} end
  return {adopt(set[1], passed, mode, per, tokens, spent, aux)}
end

-- full returns the ms, rounded up, until lacks is full under set, at most if there are leases; 0 if it is.
local function full(set, lacks)
  local most = 0
  if set.usual and not lacks.lease then return ceil(ceil(lacks[1] * set[1].unit - lacks[2], set[1].step), 1000) end
  for i = 1, #set do
    local us, leased = nil, leased(lacks, i)
    if leased > 0 then
      us = lacks.lease[#lacks.lease - 1] - now + wait(set[i], lacks[2 * i - 1] + leased, 0)
    else
      us = wait(set[i], lacks[2 * i - 1], lacks[2 * i], set.slides and lacks.logs[i])
    end
    if us > most then most = us end
  end
  return ceil(most, 1000)
end

-- writeLogs adds the logs of lacks to the parts of a value.
local function writeLogs(parts, set, lacks, wide)
  local format = '>' .. (wide and WIDE_ENTRY or ENTRY)
  for i = 1, #set do
    local log, sign = set[i].mode == 4 and lacks.logs[i], 1
    if leased(lacks, i) > 0 then log, sign = lacks.lease, -1 end
    if log then
      parts[#parts + 1] = pack('>B', #log / 2)
      for j = 1, #log, 2 do parts[#parts + 1] = pack(format, (now - log[j]) * sign, log[j + 1]) end
    end
  end
  parts[#parts + 1] = pack('>B', #set)
end

-- encode returns the value of what is left in k.
local function encode(k, ms)
  local set, lacks = charged[k], left[k]
  local wide, named, l, lease = now >= 2^52 or ms >= 2^32, false, set[1], lacks.lease
  if set.usual and not lease and l.name == 0 and not (wide or l.large) and lacks[1] < 2^24 and lacks[2] < 2^40 then
    return pack(ONE, 128 + top, low, ms, 0, l.per, l.tokens, lacks[1], lacks[2])
  end
  for i = 1, #set do
    wide = wide or set[i].large or lacks[2 * i - 1] >= 2^24 or lacks[2 * i] >= 2^40
    named = named or set[i].name > 0
  end
  if lease and lease.sum >= 2^24 then wide = true end
  if #set == 1 and not wide and not named and l.mode ~= 4 and not lease then
    return pack(ONE, 128 + top, low, ms, l.mode, l.per, l.tokens, lacks[1], lacks[2])
  end
  local limit = '>' .. (wide and WIDE_LIMIT or LIMIT)
  local flags = 128 + (wide and 16 or 0) + (named and 32 or 0) + ((set.slides or lease) and 64 or 0)
  local parts = {wide and pack(WIDE_HEAD, flags, now, ms) or pack(HEAD, flags + top, low, ms)}
  for i = 1, #set do
    l = set[i]
    local mode = leased(lacks, i) > 0 and l.mode / 2 + 5 or l.mode
    parts[#parts + 1] = pack(limit, mode, l.per, l.tokens, lacks[2 * i - 1], lacks[2 * i])
    if named then parts[#parts + 1] = pack('>I4', l.name) end
  end
  if set.slides or lease then writeLogs(parts, set, lacks, wide) end
  return table.concat(parts)
end

-- settle makes state[k] what the bucket lacks now under set.
local function settle(k, set)
  if foreign[k] then return end
  if charged[k] then
    local ms = full(charged[k], left[k])
    values[k] = ms > 0 and encode(k, ms)
  end
  local value, lacks = values[k]
  if not value then
    lacks = none(set)
  elseif #value == 28 and #set == 1 then
    lacks = decodeOne(k, set)
  else
    lacks = decode(k, set)
  end
  state[k], under[k] = lacks, set
  if not lacks then foreign[k] = true end
end

-- holds says that every limit has cost tokens in k or, with debt, one.
local function holds(k, set, cost)
  if set.debt and cost >= 0 then cost = 1 end
  if cost <= 0 or foreign[k] then return true end
  local lacks = state[k]
  for i = 1, #set do
    if cost > set[i].burst - lacks[2 * i - 1] - leased(lacks, i) then return false end
  end
  return true
end

-- spend takes cost from every limit of k, up to empty or to full, and says whether that counts.
local function spend(k, set, cost)
  if foreign[k] or cost == 0 or set.closed then return false end
  local lacks = state[k]
  for i = 1, #set do
    lacks[2 * i - 1], lacks[2 * i] = pay(set[i], lacks[2 * i - 1], lacks[2 * i], cost, set.slides and lacks.logs[i], leased(lacks, i))
  end
  left[k], charged[k] = lacks, set
  return true
end

-- strange finds the keys without a value that are of another type.
local function strange()
  local none = {}
  for k = 1, #KEYS do
    if not values[k] then none[#none + 1] = KEYS[k] end
  end
  local there = 0
  for from = 1, #none, 1000 do there = there + call('EXISTS', spread(none, from, min(from + 999, #none))) end
  if there == 0 then return end
  for k = 1, #KEYS do
    local answer = not values[k] and redis.pcall('GET', KEYS[k])
    if answer then
      if not string.find(answer.err, '^WRONGTYPE') then call('GET', KEYS[k]) end -- raises what it was
      foreign[k] = true
    end
  end
end

-- fetch reads all values.
local function fetch()
  for from = 1, #KEYS, 1000 do
    local last = math.min(from + 999, #KEYS)
    local list = call('MGET', spread(KEYS, from, last))
    for k = from, last do values[k] = list[k - from + 1] end
  end
  strange() -- MGET has nothing for an absent key and for one of another type
end

-- moved returns value with its last charge now.
local function moved(value)
  local first, head = byte(value)
  if first % 32 >= 16 then head = pack('>BI7', first, now) else head = pack('>BI6', first - first % 16 + top, low) end
  return head .. string.sub(value, #head + 1)
end

local dates = {} -- of expiry, by the ms to full, as texts: a number is written out at each call

-- write stores what has changed of k and, if it was charged, returns what is stored: nil for nothing.
local function write(k)
  if charged[k] then
    local ms = full(charged[k], left[k])
    if ms == 0 then
      call('DEL', KEYS[k])
      return nil
    end
    local value = encode(k, ms)
    local date = dates[ms]
    if not date then
      date = string.format('%.0f', expires + ms)
      dates[ms] = date
    end
    call('SET', KEYS[k], value, 'PXAT', date)
    return value
  end
  if ahead[k] and keep[k] then call('SET', KEYS[k], moved(values[k]), 'PXAT', expires + ahead[k]) end
end

