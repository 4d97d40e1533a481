-- bucket.lua: take a token from a bucket that refills greedily.
--
-- KEYS   the bucket
-- ARGV   1 tokens, 2 the µs in which they come back
-- Reply  1 if there was one, else 0
-- Value  when the bucket will be full, in µs, as a packed double
local now = redis.call('TIME')
now = now[1] * 1000000 + now[2]
local full = now
local value = redis.call('GET', KEYS[1])
if value then full = math.max(struct.unpack('d', value), now) end
full = full + ARGV[2] / ARGV[1]
if full - now > tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], struct.pack('d', full), 'PX', '86400000')
return 1
