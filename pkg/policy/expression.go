package policy

import (
	"fmt"
	"math"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// An expression is compiled CEL. It never changes and is safe for concurrent
// use. Where a nil one stands, there is none.
type expression struct {
	field   string // of its rule, as a Failure names it
	text    string
	program cel.Program
}

// A Failure is an expression that had no value for a request: it asked for
// what is not there, took too long, or was of another type than it must be.
type Failure struct {
	Rule *Rule
	// Field is where the rule has it: match.when, cost, overrides[1].when.
	Field string
	// Err says why. Its text may repeat what the client wrote.
	Err error
}

// value evaluates e for the request of v.
func (e *expression) value(v *view) (ref.Val, error) {
	out, _, err := e.program.Eval(v.variables())
	return out, err
}

// holds says that e is true. One that fails, which v keeps for r, is otherwise.
func (e *expression) holds(v *view, r *Rule, otherwise bool) bool {
	out, err := e.value(v)
	if err == nil {
		if b, ok := out.(types.Bool); ok {
			return bool(b)
		}
		err = fmt.Errorf("found a value of type %s, want true or false", out.Type().TypeName())
	}
	v.failures = append(v.failures, Failure{r, e.field, err})
	return otherwise
}

// covers says that e is true wherever o is.
func (e *expression) covers(o *expression) bool {
	return e == nil || o != nil && e.text == o.text
}

// A cost is what a request is charged.
type cost struct {
	fixed int64
	by    *expression // takes the place of fixed
}

// same says that c and o cost the same for every request.
func (c *cost) same(o *cost) bool {
	return c.by.covers(o.by) && o.by.covers(c.by) && c.fixed == o.fixed
}

const (
	// maxCost is the most that a request is charged.
	maxCost = math.MaxInt32
	// unknownCost is what a request is charged whose cost failed.
	unknownCost = 1
)

// of returns the cost of the request of v under r.
func (c *cost) of(v *view, r *Rule) int64 {
	if c.by == nil {
		return c.fixed
	}
	out, err := c.by.value(v)
	if err == nil {
		if n, ok := tokens(out); ok {
			return n
		}
		err = fmt.Errorf("found a value of type %s, want a number", out.Type().TypeName())
	}
	v.failures = append(v.failures, Failure{r, c.by.field, err})
	return unknownCost
}

// tokens returns the number that out is, from 0 to maxCost. A part of a token
// is a whole one.
func tokens(out ref.Val) (n int64, ok bool) {
	switch n := out.(type) {
	case types.Int:
		return min(max(int64(n), 0), maxCost), true
	case types.Uint:
		return int64(min(uint64(n), maxCost)), true
	case types.Double:
		f := float64(n)
		return int64(math.Ceil(min(max(f, 0), maxCost))), !math.IsNaN(f)
	default:
		return 0, false
	}
}
