package sim

// A window watches the tokens that leave one bucket, and knows the law of
// buckets alone: in no window of w µs are there more than the burst and what
// comes back in w. It knows nothing of how a bucket counts.
//
// With s tokens gone before one of them at moment t, both counted in parts of
// which a period has as many as µs, a window that begins there and ends with
// the token before which e are gone at u has (e + 1 - s) × per of them, which
// must not exceed burst × per + tokens × (u - t). So it is enough to know the
// most of tokens × t - s × per that there was.
type window struct {
	burst, tokens, per int64 // tokens that come back in per µs
	gone               int64
	most               int64
}

// spend notes a token at a moment that is not before the last, in µs from 0,
// and says whether the law holds.
func (w *window) spend(at int64) bool {
	begins := w.tokens*at - w.gone*w.per
	if w.gone == 0 || begins > w.most {
		w.most = begins
	}
	ends := w.tokens*at - (w.gone+1)*w.per
	w.gone++
	return w.most-ends <= w.burst*w.per
}
