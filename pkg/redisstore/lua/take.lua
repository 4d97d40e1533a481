-- take.lua: charge the buckets of each group, or none of them. It follows state.lua, and so do KEYS and ARGV 1 and 2.
--
-- ARGV  3  the charges, packed: flags B (1 begins a group, 2 is shadow, 16 only wants what an earlier charge of its group
--          left under other limits), key I4 and set I4 (places, from 1), cost i7.
--          In a group the shadow charges come last. Its costs on one key are summed already.
--          A group that begins with 4 has failed elsewhere; if the first begins with 8, it is the only one
-- Reply now, then for each charge
--          0 no room, 1 charged, 2 room but not charged, then spent and aux for each limit, then for each that slides the
--          number of its entries and of each how many µs ago it was, and its tokens;
--          or 3 alone: the value is none of ours. It was left as it is, and the group went on as if it had room.
--          After 8, for each key what is to be put back if the charge is undone, and what is stored now: '' for nothing.
--          now alone: the running period of a calendar is another than ARGV 2 says, and nothing was done
--
-- Groups are taken in order. A look (cost 0) that has room and a denied charge write nothing, except that state from the
-- future is moved to now by a charge (a shadow one: if its group passed). A positive cost with debt is charged in any
-- case; without room before, its answer is 0.

local out, n = {now}, 1

-- answer adds what k lacks to the reply.
local function answer(k, status)
  if foreign[k] then status = 3 end
  n = n + 1
  out[n] = status
  if status == 3 then return end
  local lacks = state[k]
  for i = 1, #lacks do out[n + i] = lacks[i] end
  n = n + #lacks
  for i = 1, lacks.logs and #lacks.logs or 0 do
    local log = lacks.logs[i]
    if under[k][i].mode == 4 then
      out[n + 1] = #log / 2
      for j = 1, #log, 2 do out[n + 1 + j], out[n + 2 + j] = now - log[j], log[j + 1] end
      n = n + 1 + #log
    end
  end
end

-- The charges, by their place in ARGV[3].
local text, list = ARGV[3], sets(ARGV[2])
if stale then return {now} end
local flags, keys, terms, costs, room, count, at = {}, {}, {}, {}, {}, 0, 1
while at <= #text do
  count = count + 1
  flags[count], keys[count], terms[count], costs[count], at = unpack('>BI4I4i7', text, at)
  terms[count] = list[terms[count]]
end

-- fits says whether there is room for charge c.
local function fits(c)
  local k, set = keys[c], terms[c]
  if under[k] ~= set then settle(k, set) end
  room[c] = flags[c] >= 16 or holds(k, set, costs[c])
  return room[c]
end

-- charge makes charge c if its group passed and there is room, or if it owes, and answers it.
local function charge(c, passed)
  local k, set, cost, shadow = keys[c], terms[c], costs[c], flags[c] % 4 >= 2
  if shadow or under[k] ~= set then fits(c) end
  local made = (set.debt and cost > 0) or (passed and room[c])
  if not (made and spend(k, set, cost)) and (cost ~= 0 or not room[c]) and (passed or not shadow) then keep[k] = true end
  answer(k, room[c] and (made and 1 or 2) or 0)
end

-- usual makes a charge that is a group, of a usual set: it does what take would, and says whether it has.
local function usual(k, set, cost)
  if under[k] ~= set then settle(k, set) end
  if foreign[k] then return false end
  local lacks, status = state[k], 0
  if cost <= set[1].burst - lacks[1] then
    lacks[1], left[k], charged[k], status = lacks[1] + cost, lacks, set, 1
  else
    keep[k] = true
  end
  out[n + 1], out[n + 2], out[n + 3], n = status, lacks[1], lacks[2], n + 3
  return true
end

-- take makes the charges of one group, from first to last.
local function take(first, last)
  if first == last and flags[first] == 1 and costs[first] > 0 and terms[first].usual and usual(keys[first], terms[first], costs[first]) then
    return
  end
  local passed = flags[first] % 8 < 4
  for c = first, last do
    if flags[c] % 4 < 2 and not fits(c) then passed = false end
  end
  for c = first, last do charge(c, passed) end
end

fetch()
local before, first = {}, 1
for k = 1, #KEYS do before[k] = values[k] end
for c = 1, count do
  if c == count or flags[c + 1] % 2 == 1 then
    take(first, c)
    first = c + 1
  end
end
for k = 1, #KEYS do
  local stored = write(k) or ''
  if flags[1] and flags[1] >= 8 then
    out[n + 1] = before[k] and (ahead[k] and moved(before[k]) or before[k]) or ''
    out[n + 2] = stored
    n = n + 2
  end
end
return out
