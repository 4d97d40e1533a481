-- leases.lua: what is leased of a bucket. It stands behind sliding.lua and before state.lua and does nothing by itself.
--
-- A log is when leases end in µs and the tokens that they have, in turns, the first to end first; sum is its tokens, limit
-- the place of the limit that they are of: one, which is greedy. Few calls have one: only those make what is in leasing().

local leases -- what leasing() returns, once it is needed

local function leasing()
  local LONGEST, PARTS, MOST = 3600 * 1e6, 16, 64

  -- entries returns log, of how many µs after the moment at leases end, with the moments; or nil if it can be none.
  local function entries(log, at)
    local last = 0
    log.sum = 0
    for i = 1, #log, 2 do
      if log[i] <= last or log[i] > LONGEST or log[i + 1] == 0 then return nil end
      last, log.sum = log[i], log.sum + log[i + 1]
      log[i] = at + last
    end
    return log.sum > 0 and log.sum < 2^53 and log
  end

  -- from returns the entries of log from a place on.
  local function from(log, i)
    local rest = {spread(log, i)}
    rest.sum = log.sum
    return rest
  end

  -- cut returns spent, aux and log of no more than l may have spent: less of what is spent, then of what ends first.
  local function cut(l, spent, aux, log)
    local over, i = log.sum - l.most, 1
    if over < 0 then
      if spent > -over then spent = -over end
      return spent, aux, log
    end
    log.sum = log.sum - over
    while log[i] and log[i + 1] <= over do over, i = over - log[i + 1], i + 2 end
    if log[i] then log[i + 1] = log[i + 1] - over end
    return 0, 0, from(log, i)
  end

  -- settle returns spent, aux and log, which l had passed µs ago, as it has them now.
  local function settle(l, passed, spent, aux, log)
    local at, i = now - passed, 1
    spent, aux, log = cut(l, spent, aux, log)
    while log[i] and log[i] <= now do
      spent, aux = refill(l, spent, aux, log[i] - at)
      if l.mode == 2 then spent, aux = capped(l, spent, aux) end
      at, spent, log.sum = log[i], spent + log[i + 1], log.sum - log[i + 1]
      i = i + 2
    end
    if i > 1 then log = from(log, i) end
    spent, aux = refill(l, spent, aux, now - at)
    return spent, aux, log[1] and log
  end

  -- handBack takes up to so many tokens out of log, of those that end first of all that end no sooner, and returns how many.
  local function handBack(log, tokens, ends)
    local i, taken = 1, 0
    while log[i] and log[i] < ends do i = i + 2 end
    while log[i] and taken < tokens do
      local n = min(tokens - taken, log[i + 1])
      taken, log[i + 1], log.sum = taken + n, log[i + 1] - n, log.sum - n
      if log[i + 1] == 0 then
        table.remove(log, i)
        table.remove(log, i)
      end
    end
    return taken
  end

  -- grant returns log with up to so many tokens more, leased for us µs, and how many they are.
  local function grant(log, room, want, us)
    local n, ends, grid, i, merged = min(want, room - log.sum), now + us, ceil(us, PARTS), 1, {}
    if us < 1 or us > LONGEST or n < 1 then return log, 0 end
    local cell, tokens = floor(ends / grid), n
    for j = 1, #log, 2 do
      if floor(log[j] / grid) == cell then
        ends, tokens = math.max(ends, log[j]), tokens + log[j + 1]
      else
        merged[#merged + 1] = log[j]
        merged[#merged + 1] = log[j + 1]
      end
    end
    if #merged >= 2 * MOST then return log, 0 end
    while merged[i] and merged[i] < ends do i = i + 2 end
    table.insert(merged, i, tokens)
    table.insert(merged, i, ends)
    merged.sum, merged.limit = log.sum + n, 1
    return merged, n
  end

  return {entries = entries, settle = settle, handBack = handBack, grant = grant}
end

