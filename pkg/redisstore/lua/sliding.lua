-- sliding.lua: the logs of sliding limits. It stands behind refill.lua and does nothing by itself.
--
-- A log is what a sliding limit remembers: times in µs and the tokens that were taken then, in turns, the oldest first.
-- Few calls have one: only those make what is in sliding().

local slides -- what sliding() returns, once it is needed

local function sliding()
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

  -- entries returns log, of how many µs before the moment at charges were made, with the moments; or nil if one is as old as
  -- a period of us, or they have not so many tokens as are spent.
  local function entries(log, at, us, spent)
    for i = 1, #log, 2 do
      if log[i] >= us or log[i + 1] == 0 then return nil end
      us, spent = log[i], spent - log[i + 1]
      log[i] = at - log[i]
    end
    return spent == 0 and log
  end

  return {slide = slide, add = add, giveBack = giveBack, entries = entries}
end

