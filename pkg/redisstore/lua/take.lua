-- take.lua: charge the buckets of each group, or none of them.
--
-- KEYS  the buckets, each once
-- ARGV  1  now in µs, or '' to ask the server
--       2  the sets of limits, packed: for each set its number of limits (B), then for each limit
--          mode B (0 greedy, 1 interval, 2 greedy in ticks of 1 ms), name I4, period in ms I7, tokens I7, burst I7,
--          unit I7, step I7
--       3  the charges, packed: flags B (1 begins a group, 2 is shadow), key I4 and set I4 (places, from 1), cost i7.
--          In a group the shadow charges come last. Its costs on one key are summed already
-- Reply now, then for each charge
--          0 no room, 1 charged, 2 room but not charged, then spent and aux for each limit;
--          or 3 alone: the value is none of ours. It was left as it is, and the group went on as if it had room
-- Value    B 128 + flags (16 wide, 32 named) + the top 4 bits of at, I6 the rest of at in µs, I4 the ms from then to full;
--          then for each limit mode B, period in ms I4, tokens I4, spent I3, aux I5, and where named the name I4.
--          Wide: at 0 in the first byte, and I7 for every number but mode and name
--
-- Groups are taken in order. A look (cost 0) and a denied charge write nothing, except that state from the future is
-- moved to now when its charge has a cost (a shadow one: if its group passed). An absent key is a full bucket; a key expires a margin after it is full.
-- Numbers are whole and below 2^53. A quotient is (a - fmod(a, b)) / b: `%` and floor(a / b) are not exact there.

local unpack, pack, fmod, floor = struct.unpack, struct.pack, math.fmod, math.floor
local call = redis.call

local EXACT, CENTURY = 2^53, 36500 * 86400000
local HEAD, LIMIT, NAME = '>BI6I4', 'BI4I4I3I5', 'I4'
local WIDE_HEAD, WIDE_LIMIT = '>BI7I7', 'BI7I7I7I7'

local now = tonumber(ARGV[1])
local margin = 60000 -- of real time, for a clock that is not the server's
if not now then
  local time = call('TIME')
  now, margin = time[1] * 1000000 + time[2], 1000
end
local top = floor(now / 2^48)
local low = now - top * 2^48

local buckets, out, n = {}, {now}, 1

-- ceil returns a/b rounded up, 0 for a below 0.
local function ceil(a, b)
  if a <= 0 then return 0 end
  a = a - 1
  return (a - fmod(a, b)) / b + 1
end

-- wait returns the µs until all spent tokens are back.
local function wait(l, spent, aux)
  if spent == 0 or l.tokens == 0 then return 0 end
  if l.mode == 1 then return ceil(spent, l.tokens) * l.us - aux end
  if l.tick == 1 then return ceil(spent * l.unit - aux, l.step) end
  local phase = fmod(aux, l.tick)
  return ceil(spent * l.unit - (aux - phase) / l.tick, l.step) * l.tick - phase
end

-- refill returns spent and aux after elapsed µs.
local function refill(l, spent, aux, elapsed)
  if spent == 0 or elapsed >= wait(l, spent, aux) then return 0, 0 end
  if l.mode == 1 then
    local since = elapsed + aux
    aux = fmod(since, l.us)
    return spent - (since - aux) / l.us * l.tokens, aux
  end
  local phase, since = fmod(aux, l.tick), elapsed
  since = since + phase
  local rest = fmod(since, l.tick)
  local parts = (aux - phase) / l.tick + (since - rest) / l.tick * l.step
  aux = fmod(parts, l.unit)
  return spent - (parts - aux) / l.unit, aux * l.tick + rest
end

-- sane says that the fields of a value are numbers that a bucket can have.
local function sane(b)
  local f = b.fields
  if b.at >= EXACT or b.full > CENTURY + 1000 then return false end
  for j = b.first, b.first + (b.n - 1) * b.stride, b.stride do
    local period = f[j + 1]
    if f[j] > 2 or period < 1 or period > CENTURY or f[j + 2] >= EXACT or f[j + 3] >= EXACT
      or f[j + 4] >= period * 1000 then return false end
  end
  return true
end

-- decode returns the bucket that value is, or nil if it is none.
local function decode(value)
  local first = string.byte(value) or 0
  if first < 128 or first >= 192 then return nil end
  local top = first % 16
  local wide, named = first % 32 >= 16, first >= 160
  local head, limit, length, stride = HEAD, LIMIT, 17, 5
  if wide then head, limit, length = WIDE_HEAD, WIDE_LIMIT, 29 end
  if named then limit, length, stride = limit .. NAME, length + 4, 6 end
  local count = (#value - (wide and 15 or 11)) / length
  if count < 1 or count > 16 or count % 1 ~= 0 or (wide and top > 0) then return nil end
  local f = {unpack(head .. string.rep(limit, count), value)}
  local b = {at = top * 2^48 + f[2], full = f[3], fields = f, first = 4, stride = stride, n = count, value = value, wide = wide}
  return sane(b) and b or nil
end

-- read returns the bucket under KEYS[k] as it was stored, at now if it came from the future.
local function read(k)
  local value = redis.pcall('GET', KEYS[k])
  if not value then return {} end
  if type(value) == 'table' and not string.find(value.err, '^WRONGTYPE') then call('GET', KEYS[k]) end -- raises it
  local b = type(value) == 'string' and decode(value) or {foreign = true}
  if b.at and b.at > now then b.at, b.ahead = now, true end
  return b
end

-- match returns for each limit of set the place of its field in b, or false: by name, else period, else position.
local function match(b, set)
  local from, taken, f = {}, {}, b.fields
  local function pass(fits)
    for i = 1, #set do
      for j = 1, b.n do
        if not from[i] and not taken[j] and fits(set[i], b.first + (j - 1) * b.stride, i, j) then
          from[i], taken[j] = b.first + (j - 1) * b.stride, true
        end
      end
    end
  end
  if b.stride == 6 then pass(function(l, at) return l.name ~= 0 and l.name == f[at + 5] end) end
  pass(function(l, at) return l.per == f[at + 1] end)
  pass(function(_, _, i, j) return i == j end)
  return from
end

-- aligned says that every limit of set finds its field in its own place.
local function aligned(b, set)
  if b.n ~= #set then return false end
  if b.n == 1 then return true end
  local f, at = b.fields, b.first
  for i = 1, #set do
    local name = b.stride == 6 and f[at + 5] or 0
    if f[at + 1] ~= set[i].per or name ~= set[i].name then return false end
    at = at + b.stride
  end
  return true
end

-- adopt returns what is stored in b as it stands at now under set: spent and aux for each limit.
local function adopt(b, set)
  local state, f, elapsed = {}, b.fields, now - b.at
  local from = not aligned(b, set) and match(b, set)
  for i = 1, #set do
    local l, at, spent, aux = set[i], b.first + (i - 1) * b.stride, 0, 0
    if from then at = from[i] end
    if at then
      spent = f[at + 3]
      if spent > l.burst then spent = l.burst end
      if f[at] == l.mode and f[at + 1] == l.per and (l.mode == 1 or f[at + 2] == l.tokens) then aux = f[at + 4] end
      spent, aux = refill(l, spent, aux, elapsed)
    end
    state[2 * i - 1], state[2 * i] = spent, aux
  end
  return state
end

-- full returns the ms, rounded up, until state is full under set; 0 if it is.
local function full(state, set)
  local most = 0
  for i = 1, #set do
    local us = wait(set[i], state[2 * i - 1], state[2 * i])
    if us > most then most = us end
  end
  return ceil(most, 1000)
end

-- restore makes what was charged in b the stored bucket, so that other limits can adopt it.
local function restore(b)
  local set, state, f = b.charged, b.left, {}
  for i = 1, #set do
    local l = set[i]
    f[#f + 1], f[#f + 2], f[#f + 3] = l.mode, l.per, l.tokens
    f[#f + 1], f[#f + 2], f[#f + 3] = state[2 * i - 1], state[2 * i], l.name
  end
  b.fields, b.first, b.stride, b.n = f, 1, 6, #set
  b.at, b.full = now, full(state, set)
end

-- settle makes b.state what b lacks now under set.
local function settle(b, set)
  if b.set == set or b.foreign then return end
  if b.charged then restore(b) end
  b.set = set
  if b.at and now < b.at + b.full * 1000 then
    b.state = adopt(b, set)
    return
  end
  local state = {}
  for i = 1, 2 * #set do state[i] = 0 end
  b.state = state
end

-- holds says that every limit has cost tokens in b.
local function holds(b, cost)
  if cost <= 0 or b.foreign then return true end
  local set, state = b.set, b.state
  for i = 1, #set do
    if cost > set[i].burst - state[2 * i - 1] then return false end
  end
  return true
end

-- spend takes cost from every limit of b, up to empty or to full, and says whether that counts.
local function spend(b, cost)
  local state = b.state
  if b.foreign or cost == 0 or b.set.closed then return false end
  for i = 1, #b.set do
    local spent = state[2 * i - 1] + cost
    if spent <= 0 then spent, state[2 * i] = 0, 0 end
    if spent > b.set[i].burst then spent = b.set[i].burst end
    state[2 * i - 1] = spent
  end
  b.charged, b.left = b.set, state
  return true
end

-- answer adds b to the reply.
local function answer(b, status)
  if b.foreign then status = 3 end
  n = n + 1
  out[n] = status
  if b.foreign then return end
  local state = b.state
  for i = 1, #state do
    n = n + 1
    out[n] = state[i]
  end
end

-- sets reads ARGV[2].
local function sets()
  local list, at = {}, 1
  while at <= #ARGV[2] do
    local set, count = {}
    count, at = unpack('>B', ARGV[2], at)
    for i = 1, count do
      local l = {}
      l.mode, l.name, l.per, l.tokens, l.burst, l.unit, l.step, at = unpack('>BI4I7I7I7I7I7', ARGV[2], at)
      l.us, l.tick = l.per * 1000, l.mode == 2 and 1000 or 1
      set.closed = set.closed or l.tokens == 0
      set[i] = l
    end
    list[#list + 1] = set
  end
  return list
end

local list, charges = sets(), {}

-- charge is one charge of ARGV[3], at the place at, and the next place.
local function charge(at)
  local flags, k, set, cost, next = unpack('>BI4I4i7', ARGV[3], at)
  local b = buckets[k]
  if not b then
    b = read(k)
    buckets[k] = b
  end
  return {begins = flags % 2 == 1, shadow = flags >= 2, bucket = b, set = list[set], cost = cost}, next
end

-- lone makes the charge c if its group passed and there is room, and answers it.
local function lone(c, passed)
  local b = c.bucket
  settle(b, c.set)
  local room = holds(b, c.cost)
  local counted = passed and room and spend(b, c.cost)
  if c.cost ~= 0 and not counted and (passed or not c.shadow) then b.keep = true end
  answer(b, room and (passed and 1 or 2) or 0)
end

-- take makes the charges of one group, from first to last.
local function take(first, last)
  local passed, c = true, first
  while c <= last and not charges[c].shadow do
    local b = charges[c].bucket
    settle(b, charges[c].set)
    if not holds(b, charges[c].cost) then passed = false end
    c = c + 1
  end
  for i = first, last do lone(charges[i], passed) end
end

-- encode returns b.left as a value.
local function encode(b, ms)
  local set, state, named, wide = b.charged, b.left, false, now >= 2^52 or ms >= 2^32
  for i = 1, #set do
    local l = set[i]
    named = named or l.name > 0
    wide = wide or l.per >= 2^32 or l.tokens >= 2^32 or state[2 * i - 1] >= 2^24 or state[2 * i] >= 2^40
  end
  local flags = 128 + (wide and 16 or 0) + (named and 32 or 0)
  local limit = '>' .. (wide and WIDE_LIMIT or LIMIT)
  local parts = {wide and pack(WIDE_HEAD, flags, now, ms) or pack(HEAD, flags + top, low, ms)}
  for i = 1, #set do
    local l = set[i]
    parts[#parts + 1] = pack(limit, l.mode, l.per, l.tokens, state[2 * i - 1], state[2 * i])
    if named then parts[#parts + 1] = pack('>I4', l.name) end
  end
  return table.concat(parts)
end

-- write stores what has changed of b.
local function write(key, b)
  if b.charged then
    local ms = full(b.left, b.charged)
    if ms > 0 then return call('SET', key, encode(b, ms), 'PX', ms + margin) end
    if b.value then call('DEL', key) end
  elseif b.ahead and b.keep then
    local head = b.wide and pack('>BI7', string.byte(b.value), now) or pack('>BI6', floor(string.byte(b.value) / 16) * 16 + top, low)
    call('SET', key, head .. string.sub(b.value, #head + 1), 'PX', b.full + margin)
  end
end

local at = 1
while at <= #ARGV[3] do
  charges[#charges + 1], at = charge(at)
end
local first = 1
for c = 1, #charges do
  if c == #charges or charges[c + 1].begins then
    take(first, c)
    first = c + 1
  end
end
for k, key in ipairs(KEYS) do
  if buckets[k] then write(key, buckets[k]) end
end
return out
