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
-- Numbers are whole and below 2^53. There floor(a / b), and with it `%`, is exact: a / b stays at least 1 / b below the
-- next whole number, which is more than half a step of the doubles there, so it never rounds up to it.

local spread, unpack, pack, byte = unpack, struct.unpack, struct.pack, string.byte
local floor, min, call = math.floor, math.min, redis.call

local now = tonumber(ARGV[1])
if not now then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- Functions that are there once sums has made them, which costs as much as a charge: most usual calls do without.
local ceil, wait, begun, refill, capped

local function sums()
  -- ceil returns a/b rounded up, 0 for a below 0.
  function ceil(a, b)
    if a <= 0 then return 0 end
    a = a - 1
    return (a - a % b) / b + 1
  end

  -- wait returns the µs until all spent tokens are back.
  function wait(l, spent, aux, log)
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
  function begun(l, elapsed)
    if not l.starts then return ceil(elapsed - now % l.us, l.us) end
    local running = #l.starts / 2
    local i = running
    while i > 0 and l.starts[i] > now - elapsed do i = i - 1 end
    return running - i
  end

  -- refill returns spent and aux after elapsed µs, of a limit that has no log. A product that leaves the exact range is
  -- more than all that is spent.
  function refill(l, spent, aux, elapsed)
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
  function capped(l, spent, aux)
    if spent == 0 then return 0, 0 end
    local phase, part = aux % 1000, l.step % 1000
    local came = phase * (l.step - part) / 1000 + floor(phase * part / 1000)
    if spent * l.unit - (aux - phase) / 1000 <= came then return 0, 0 end
    return spent, aux
  end
end

