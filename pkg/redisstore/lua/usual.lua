-- usual.lua: the usual call of take.lua, without most of what that stands on, which costs more to set up than a few charges
-- cost to make. It stands behind refill.lua and before the rest of take.lua. A call that has anything unusual about it is
-- left to that, with nothing done; any other is answered as that would.
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

local function usual()
  local sets, text = plain(ARGV[2]), ARGV[3]
  if not sets or #text > 8000 then return nil end
  local charges = {unpack('>' .. string.rep('BI4I4i7', #text / 16), text)} -- and last a number that is not 0
  local values, terms, spent, aux, changed, out, n = call('MGET', spread(KEYS)), {}, {}, {}, {}, {now}, 1

  -- settle reads what bucket k lacks of l now, and says whether that is usual.
  local function settle(k, l)
    if terms[k] then return false end -- under another
    local value = values[k]
    terms[k], spent[k], aux[k] = l, 0, 0
    if not value then return call('EXISTS', KEYS[k]) == 0 end -- it may be of another type
    if #value ~= 28 then return false end
    local first, rest, ms, mode, per, tokens, was, part = unpack(SHORT, value)
    local passed = now - (first - 128) * 2^48 - rest
    if first < 128 or first >= 144 or mode ~= l.mode or per ~= l.per or tokens ~= l.tokens or part >= l.us then return false end
    if passed < ms * 1000 then spent[k], aux[k] = refill(l, min(was, l.burst), part, passed) end
    return passed >= 0
  end

  -- take makes the charges of the group that begins at first, and returns where the next does, or nil.
  local function take(first)
    local passed, at = charges[first] == 1, first
    if not passed then return nil end
    repeat
      local k, l, cost = charges[at + 1], sets[charges[at + 2]], charges[at + 3]
      if cost <= 0 or (terms[k] ~= l and not settle(k, l)) then return nil end
      passed, at = passed and cost <= l.burst - spent[k], at + 4
    until charges[at] ~= 0
    for c = first, at - 1, 4 do
      local k, l, cost, status = charges[c + 1], sets[charges[c + 2]], charges[c + 3], 0
      if passed then
        if l.mode == 2 then spent[k], aux[k] = capped(l, spent[k], aux[k]) end
        spent[k], changed[k], status = spent[k] + cost, true, 1
      elseif cost <= l.burst - spent[k] then
        status = 2
      end
      out[n + 1], out[n + 2], out[n + 3], n = status, spent[k], aux[k], n + 3
    end
    return at
  end

  local at = 1
  while at < #charges do
    at = take(at)
    if not at then return nil end
  end
  for k in pairs(changed) do
    local l = terms[k]
    local ms = ceil(wait(l, spent[k], aux[k]), 1000)
    if ms == 0 or ms >= 2^32 or spent[k] >= 2^24 or aux[k] >= 2^40 then return nil end
    values[k] = pack(SHORT, 128 + floor(now / 2^48), now % 2^48, ms, l.mode, l.per, l.tokens, spent[k], aux[k])
    changed[k] = string.format('%.0f', expires + ms)
  end
  for k, date in pairs(changed) do call('SET', KEYS[k], values[k], 'PXAT', date) end
  return out
end

local answered = usual()
if answered then return answered end

