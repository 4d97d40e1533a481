-- take.lua: charge the buckets of each group, or none of them. It follows state.lua, and so do KEYS and ARGV 1 and 2.
--
-- ARGV  3  the charges, packed: flags B (1 begins a group, 2 is shadow, 16 only wants what an earlier charge of its group
--          left under other limits, 32 is its group and has a lease), key I4 and set I4 (places, from 1), cost i7, and
--          how many times the group it begins is to be charged, one after the other, B: more than once only costs above 0
--          of sets of one limit that is greedy, interval or aligned, none of them shadow or with debt or a lease.
--          In a group the shadow charges come last. Its costs on one key are summed already.
--          A group that begins with 4 has failed elsewhere; if the first begins with 8, it is the only one
--       4  the leases, if there are any, packed: how many tokens are wanted i7 and for how many µs i7; and of a lease that
--          is over how many are given back i7 and how many of those were spent i7, from when until when by the clock i7
--          each, the latter no later than when it ends, and how many µs before that it may end i7
-- Reply now, then for each charge, as many times as its group is charged (usual.lua answers those at once)
--          0 no room, 1 charged, 2 room but not charged, then spent and aux for each limit, then for each that slides the
--          number of its entries and of each how many µs ago it was, and its tokens;
--          8 more where there are leases: then follow the place of their limit, their tokens and in how many µs the last
--          ends; and where the charge had a lease, how many tokens were leased and how many given back;
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
  local lacks, first = state[k], n
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
  local lease = lacks.lease
  if lease then
    out[first], out[n + 1], out[n + 2], out[n + 3], n = status + 8, lease.limit, lease.sum, lease[#lease - 1] - now, n + 3
  end
end

-- The charges, by their place in ARGV[3].
local text, list = ARGV[3], sets(ARGV[2])
if stale then return {now} end
local flags, keys, terms, costs, times, room, count, at = {}, {}, {}, {}, {}, {}, 0, 1
while at <= #text do
  count = count + 1
  flags[count], keys[count], terms[count], costs[count], times[count], at = unpack('>BI4I4i7B', text, at)
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
  local lacks, status = state[k], 0
  if not lacks or lacks.lease then return false end
  if cost <= set[1].burst - lacks[1] then
    lacks[1], left[k], charged[k], status = lacks[1] + cost, lacks, set, 1
  else
    keep[k] = true
  end
  out[n + 1], out[n + 2], out[n + 3], n = status, lacks[1], lacks[2], n + 3
  return true
end

-- report takes tokens out of the leases of k, of which so many have been spent, and returns how many.
local function report(k, set, back, spent, ends)
  local lacks = state[k]
  local log = lacks.lease
  local taken = log and not set.closed and leases.handBack(log, back, ends) or 0
  if taken == 0 then return 0 end
  local i = log.limit
  lacks[2 * i - 1], lacks[2 * i] = pay(set[i], lacks[2 * i - 1], lacks[2 * i], math.max(min(spent, taken), 0), nil, log.sum)
  if log.sum == 0 then lacks.lease = nil end
  left[k], charged[k] = lacks, set
  return taken
end

-- grant leases tokens of k, just charged, and returns how many.
local function grant(k, set, want, us)
  local l, lacks = set[1], state[k]
  if #set > 1 or l.mode % 2 == 1 or l.mode == 4 or set.debt then return 0 end
  local log, granted = leases.grant(lacks.lease or {sum = 0}, l.burst - lacks[1], want, us)
  if granted > 0 then lacks.lease = log end
  return granted
end

local place = 1 -- in ARGV[4]

-- takeLeasing makes charge c, which is a group, and what its lease says.
local function takeLeasing(c)
  local k, set, cost, granted, returned = keys[c], terms[c], costs[c], 0, 0
  local want, us, back, spent, since, ends, sooner
  want, us, back, spent, since, ends, sooner, place = unpack('>i7i7i7i7i7i7i7', ARGV[4], place)
  leases = leases or leasing()
  if under[k] ~= set then settle(k, set) end
  if foreign[k] then return answer(k, 3) end
  if back > 0 and now >= since and now < ends then returned = report(k, set, back, spent, ends - math.max(sooner, 0)) end
  local fits = holds(k, set, cost)
  local made = (fits or (set.debt and cost > 0)) and spend(k, set, cost)
  if made and fits and cost > 0 then granted = grant(k, set, want, us) end
  if not (made or returned > 0 or fits) then keep[k] = true end
  answer(k, fits and 1 or 0)
  out[n + 1], out[n + 2], n = granted, returned, n + 2
end

-- take makes the charges of one group, from first to last.
local function take(first, last)
  if flags[first] >= 32 then return takeLeasing(first) end
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
    for _ = 1, times[first] do take(first, c) end
    first = c + 1
  end
end
for k = 1, #KEYS do
  local stored = write(k) or ''
  if flags[1] and flags[1] % 32 >= 8 then
    out[n + 1] = before[k] and (ahead[k] and moved(before[k]) or before[k]) or ''
    out[n + 2] = stored
    n = n + 2
  end
end
return out
