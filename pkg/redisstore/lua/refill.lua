-- refill.lua: limits as numbers: what is spent of them, what comes back, and when. It stands before state.lua and does
-- nothing by itself.
--
-- ARGV  1  now in µs, or '' for the server's own
--       2  the sets of limits, packed: for each set its number of limits (B), then for each limit
--          mode B, name I4, period in ms I7, tokens I7, burst I7, unit I7, step I7. The mode is 0 greedy, 1 interval,
--          2 greedy in ticks of 1 ms, 3 aligned, 4 sliding; and
--          16 more with debt: the most that may be spent I7 follows;
--          32 more with a calendar: then come a number of periods n (B) and when each begins (i7), n that end with the
--          running one and n after it. If now is not in the running one, stale is true and nothing may be charged
--
-- A log is what a sliding limit remembers: times in µs and the tokens that were taken then, in turns, the oldest first.
--
-- Numbers are whole and below 2^53. There floor(a / b), and with it `%`, is exact: a / b stays at least 1 / b below the
-- next whole number, which is more than half a step of the doubles there, so it never rounds up to it.

local spread, unpack, pack, byte = unpack, struct.unpack, struct.pack, string.byte
local floor, min, call = math.floor, math.min, redis.call

local time = call('TIME')
local now, expires = tonumber(ARGV[1]), time[1] * 1000 + floor(time[2] / 1000) + 60000
if not now then
  now, expires = time[1] * 1000000 + time[2], expires - 59000
end

-- ceil returns a/b rounded up, 0 for a below 0.
local function ceil(a, b)
  if a <= 0 then return 0 end
  a = a - 1
  return (a - a % b) / b + 1
end

-- wait returns the µs until all spent tokens are back.
local function wait(l, spent, aux, log)
  if spent == 0 or l.tokens == 0 then return 0 end
  if l.mode == 0 then return ceil(spent * l.unit - aux, l.step) end
  if l.mode == 1 then return ceil(spent, l.tokens) * l.us - aux end
  if l.mode == 2 then
    local phase = aux % 1000
    return ceil(spent * l.unit - (aux - phase) / 1000, l.step) * 1000 - phase
  end
  if l.mode == 4 then return log[#log - 1] + l.us - now end
  local periods = ceil(spent, l.tokens)
  if l.starts then return l.starts[#l.starts / 2 + periods] - now end
  return periods * l.us - now % l.us
end

-- begun returns how many aligned periods have begun in the last so many µs: of a calendar's as many as are known.
local function begun(l, elapsed)
  if not l.starts then return ceil(elapsed - now % l.us, l.us) end
  local running = #l.starts / 2
  local i = running
  while i > 0 and l.starts[i] > now - elapsed do i = i - 1 end
  return running - i
end

-- refill returns spent and aux after elapsed µs, of a limit that has no log. A product that leaves the exact range is
-- more than all that is spent.
local function refill(l, spent, aux, elapsed)
  if l.mode % 2 == 1 then
    local since, came = elapsed + aux
    if l.mode == 1 then
      aux = since % l.us
      came = (since - aux) / l.us * l.tokens
    else
      aux, came = 0, begun(l, elapsed) * l.tokens
    end
    if came >= spent then return 0, 0 end
    return spent - came, aux
  end
  local unit, rest = l.unit, 0
  if l.mode == 2 then
    local phase = aux % 1000
    aux, elapsed = (aux - phase) / 1000, elapsed + phase
    rest = elapsed % 1000
    elapsed = (elapsed - rest) / 1000
  end
  local parts = aux + elapsed * l.step
  if parts >= spent * unit then return 0, 0 end
  aux = parts % unit
  return spent - (parts - aux) / unit, l.mode == 0 and aux or aux * 1000 + rest
end

-- capped returns spent and aux, about to be charged in ticks of 1 ms, without what came beyond full in the running one.
local function capped(l, spent, aux)
  if spent == 0 then return 0, 0 end
  local phase, part = aux % 1000, l.step % 1000
  local came = phase * (l.step - part) / 1000 + floor(phase * part / 1000)
  if spent * l.unit - (aux - phase) / 1000 <= came then return 0, 0 end
  return spent, aux
end

-- regroup returns log, of a limit with another period, as l has it at the moment at, and the µs since the first charge
-- of its newest entry: without what is a period old, and with the charges of one slot as one entry.
local function regroup(l, at, log)
  local merged, n, first = {}, 0, at
  for i = 1, #log, 2 do
    local t = log[i]
    if t > at - l.us then
      if n > 0 and t - first < l.slot then
        merged[n - 1], merged[n] = t, merged[n] + log[i + 1]
      else
        merged[n + 1], merged[n + 2], n, first = t, log[i + 1], n + 2, t
      end
    end
  end
  return merged, min(at - first, l.slot)
end

-- newest returns the tokens and the entries of log that the last period has, up to the burst.
local function newest(l, log)
  local spent, from = 0, #log + 1
  while from > 1 and spent < l.burst and log[from - 2] > now - l.us do
    from = from - 2
    log[from + 1] = min(log[from + 1], l.burst - spent)
    spent = spent + log[from + 1]
  end
  if from > 1 then log = {spread(log, from)} end
  return spent, log
end

-- slide returns spent, aux and log of a sliding limit passed µs after they were written, under mode and per.
local function slide(l, passed, mode, per, spent, aux, log)
  local at = now - passed
  if mode ~= 4 then
    log, aux = spent > 0 and {at, spent} or {}, 0
  elseif per ~= l.per then
    log, aux = regroup(l, at, log)
  end
  spent, log = newest(l, log)
  return spent, spent > 0 and min(aux + passed, l.slot) or 0, log
end

-- add returns spent and aux with cost more tokens in log, up to the burst: in its newest entry where its slot lasts.
local function add(l, log, spent, aux, cost)
  local n = #log
  cost = min(cost, l.burst - spent)
  if cost == 0 then return spent, aux end
  if n > 0 and aux < l.slot then
    log[n - 1], log[n] = now, log[n] + cost
  else
    log[n + 1], log[n + 2], aux = now, cost, 0
  end
  return spent + cost, aux
end

-- giveBack returns spent and aux without the newest of the tokens in log.
local function giveBack(l, log, spent, aux, tokens)
  local n = #log
  if tokens >= spent then
    for i = 1, n do log[i] = nil end
    return 0, 0
  end
  spent = spent - tokens
  while log[n] <= tokens do
    tokens = tokens - log[n]
    log[n - 1], log[n], n, aux = nil, nil, n - 2, l.slot
  end
  log[n] = log[n] - tokens
  return spent, aux
end

-- pay returns spent and aux with cost more spent, up to empty or to full.
local function pay(l, spent, aux, cost, log)
  if l.mode == 4 then
    if cost > 0 then return add(l, log, spent, aux, cost) end
    return giveBack(l, log, spent, aux, -cost)
  end
  if l.mode == 2 then spent, aux = capped(l, spent, aux) end
  spent = spent + cost
  if spent <= 0 then return 0, 0 end
  if spent > l.most then spent = l.most end
  return spent, aux
end

local stale = false

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
    for i = 1, count do
      local l = {}
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
      end
      set[i], set.closed = l, set.closed or l.tokens == 0
    end
    list[#list + 1] = set
  end
  return list
end

