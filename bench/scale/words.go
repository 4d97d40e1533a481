package main

// The words of the page.

const head = `# Scale

Written by ` + "`%s`" + `; edit [bench/scale](../bench/scale) instead. What a request costs was measured (` +
	"`go run ./bench/scale -measure bench/scale/measured.json`" + `) on a machine of %d cores that had other work besides, with %s and Redis %s; the rest follows from that, and comes
out the same each time. Put in numbers of your own: ` + "`go run ./bench/scale -rate 200000 -replicas 10 -arithmetic`" + `, or without ` + "`-arithmetic`" + ` to
simulate that fleet.

`

const measuredHead = `## What a request costs

Real processes on loopback, asked in turns, %d rounds of %s each: CPU time of a request, without the caller's, and as a share of the line "redis, 64 callers".
Of CPU time it is the least of the rounds, since what else goes on on a machine only adds to it; of the rest the median. On one Redis what comes together is one
script; in a Cluster it is one script a slot. With "direct", 32 replicas' stores ask, with no
replica around them and each for one request at a time: the node is busy, and no batch forms.

`

const flatHead = `And what should not matter, measured by [bench/](../bench) (` + "`go run ./bench -only 'over 10'`" + `):

`

const stepsHead = `From those of these lines in which one replica and one node are kept busy, what each step costs (the least squares of the relative errors, none below 0). In the
others processes fall asleep between requests, and waking up costs:

`

const arithmeticHead = `## From there to %s requests a second

Each request is one charge; a request to which several rules apply is as many. No core is to be busy for more than %.0f %% on the mean.
` + "`go run ./bench/scale -seed %d -arithmetic`" + ` prints this table.

`

const oneKeyHead = `### One hot key

A bucket lives on one core of Redis, whatever the number of nodes. With all else away, that core makes so many charges of it, if each is made by itself:

`

const spareHead = `However often the key is asked for, of that much Redis hears:

`

const simulatedHead = `## The fleet, simulated

` + "`%s`" + `: %v of %s requests a second by %d Envoys (%.0f %% of them in bursts of %v) for %s tenants (Zipf, %.2f); every tenth tenant is on
a plan of %d requests a minute, which the larger of them ask for many times over. One way over the network takes %v and %v on the mean besides, and in %.1f %% of
all cases another %v. The store's deadline is %v. On the way one node takes %.0f times as long for %v, and a replica dies, which the Envoys
notice %v later. The buckets are the real ones ([pkg/bucket](../pkg/bucket)); "ideal" is one bucket a tenant that decides the moment an Envoy asks, and is always there.

`

const keysHead = `Some tenants: the three largest, and the three largest on the plan.

`

const hotHead = `One key alone, below its limit by a fifth, with nothing else going wrong. Where the node cannot follow, it works for requests that have given up: what comes is
more than it makes, whatever the batches. (A replica would ask no more then: its breaker opens.) With leases, what is asked while a replica takes its next goes to the
node; here all of them begin, and so renew, at the same moments, which is the p99.

`

const tail = `What is not in it: that requests of a batch which ask the same [are one charge](redis.md#requests-that-come-together), so that of one key a node makes more
charges than is said here; what a request costs Envoy; a Redis that fails over; connections that are made anew; requests with several buckets; what ` +
	"`on_error`" + ` makes of a request that the store had no answer for.
`
