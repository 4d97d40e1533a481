package bucket

// A Sum is what a call charges one bucket with.
type Sum struct {
	// Cost is the sum of the costs. Each cost and the sum so far is brought
	// within ±2^53: more than any burst, and still exact.
	Cost int64
	// First is the place of the first of the charges.
	First int
}

// smallCall is how many charges are summed without a map.
const smallCall = 16

// Sums appends to buf, for each of charges, what all charges of its key and
// Shadow come to. It takes time in proportion to their number.
func Sums(buf []Sum, charges []Charge) []Sum {
	if len(charges) <= smallCall {
		return sumsOfFew(buf, charges)
	}
	type key struct {
		key    string
		shadow bool
	}
	begin := len(buf)
	firsts := make(map[key]int, len(charges))
	for i := range charges {
		c := &charges[i]
		first, known := firsts[key{c.Key, c.Shadow}]
		if !known {
			first = i
			firsts[key{c.Key, c.Shadow}] = i
		}
		buf = append(buf, Sum{First: first})
		buf[begin+first].add(c.Cost)
	}
	spread(buf[begin:])
	return buf
}

func sumsOfFew(buf []Sum, charges []Charge) []Sum {
	begin := len(buf)
	for i := range charges {
		first := 0
		for charges[first].Key != charges[i].Key || charges[first].Shadow != charges[i].Shadow {
			first++
		}
		buf = append(buf, Sum{First: first})
		buf[begin+first].add(charges[i].Cost)
	}
	spread(buf[begin:])
	return buf
}

// spread tells all charges of a bucket what its first one has come to.
func spread(sums []Sum) {
	for i := range sums {
		sums[i].Cost = sums[sums[i].First].Cost
	}
}

func (s *Sum) add(cost int64) { s.Cost = clamp(s.Cost + clamp(cost)) }

func clamp(cost int64) int64 { return max(min(cost, exact), -exact) }
