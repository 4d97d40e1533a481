package policy

import (
	"math"
	"strings"

	"cel.dev/cel-go/cel"
	celcost "cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// What an expression may take. A unit of cost is about the reading of a name,
// or of ten letters.
const (
	maxExpression = 4096 // letters
	maxNodes      = 1000
	maxDepth      = 50
	maxLoops      = 1    // one in the other
	maxRegex      = 1000 // instructions
	maxWork       = 100_000
	// What is taken for the longest text and the largest map when the work is
	// estimated. A request that has more of it is stopped at maxWork.
	maxText    = 8192
	maxDynamic = 1024 // text or list: what a claim may be
	maxEntries = 128
)

// newEnvironment says what expressions may hold.
func newEnvironment() (*cel.Env, error) {
	options := []cel.EnvOption{
		cel.OptionalTypes(),
		cel.CrossTypeNumericComparisons(true),
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.ParserRecursionLimit(maxDepth),
		cel.ExpressionNodeLimit(maxNodes),
		cel.RegexProgramSizeLimit(maxRegex),
		cel.ASTValidators(
			cel.ValidateRegexLiterals(), cel.ValidateRegexProgramSizeLimit(maxRegex),
			cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(),
			cel.ValidateComprehensionNestingLimit(maxLoops),
		),
	}
	for _, n := range attributeNames {
		options = append(options, cel.Variable(n.name, n.kind))
	}
	return cel.NewEnv(options...)
}

// environment returns what c's expressions may hold, made for the first of them.
func (c *compiler) environment() (*cel.Env, error) {
	if c.env != nil {
		return c.env, nil
	}
	env, err := newEnvironment()
	c.env = env
	return env, err
}

// A wish is what an expression must be.
type wish struct {
	says  string
	types []*cel.Type
}

var (
	wishTruth  = wish{"an expression in CEL that is true or false", []*cel.Type{cel.BoolType, cel.DynType}}
	wishNumber = wish{"a number, or an expression in CEL that is one", []*cel.Type{cel.IntType, cel.UintType, cel.DoubleType, cel.DynType}}
)

func (w wish) takes(t *cel.Type) bool {
	for _, want := range w.types {
		if t.IsExactType(want) {
			return true
		}
	}
	return false
}

// expression compiles text, which is at field of the rule at path. With a
// fault it returns nil. If the value is the same for all requests, it is
// always.
func (c *compiler) expression(path, field, text string, w wish) (e *expression, always ref.Val) {
	path += "." + field
	env, err := c.environment()
	if err != nil {
		c.fault(path, "CEL that does not start: "+err.Error(), w.says, "")
		return nil, nil
	}
	checked, issues := env.Compile(text)
	if issues.Err() != nil {
		c.issue(path, issues.Errors()[0], w)
		return nil, nil
	}
	if !w.takes(checked.OutputType()) {
		c.fault(path, quote(text)+", which is of type "+cel.FormatCELType(checked.OutputType()), w.says, "")
		return nil, nil
	}
	program, ok := c.program(path, env, checked)
	if !ok {
		return nil, nil
	}
	if always, _, err = program.Eval(cel.NoVars()); err != nil {
		always = nil
	}
	return &expression{field: field, text: text, program: program}, always
}

// issue adds what CEL found wrong, with its place in the expression.
func (c *compiler) issue(path string, e *cel.Error, w wish) {
	// A syntax error goes on with all that could have followed.
	message, _, _ := strings.Cut(e.Message, " expecting {")
	f := Fault{Path: path, Found: "CEL that does not compile: " + message, Want: w.says}
	if e.Location != nil && e.Location.Line() > 0 {
		f.Line, f.Column = e.Location.Line(), e.Location.Column()+1
	}
	if strings.HasPrefix(message, "undeclared reference") {
		f.Do = listNames()
	}
	c.faults = append(c.faults, f)
}

// program plans an expression, unless it could take too long.
func (c *compiler) program(path string, env *cel.Env, checked *cel.Ast) (cel.Program, bool) {
	most := func(s sizes) uint64 {
		estimate, err := env.EstimateCost(checked, s)
		if err != nil {
			return math.MaxUint64
		}
		return estimate.Max
	}
	if most(sizes{true}) > maxWork {
		c.fault(path, "an expression that may take too long", "one that reads less: shorter regular expressions, no loop over long texts", "")
		return nil, false
	}
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	// One that takes no longer whatever a request holds need not be watched,
	// which would take longer than most expressions do.
	if most(sizes{false}) > maxWork {
		options = append(options, cel.CostLimit(maxWork))
	}
	program, err := env.Program(checked, options...)
	if err != nil {
		c.fault(path, "CEL that does not compile: "+err.Error(), "an expression in CEL", "")
	}
	return program, err == nil
}

// sizes say how long values are for an estimate: as long as usual at most, or
// without bounds.
type sizes struct{ usual bool }

// EstimateCallCost leaves the costs to CEL.
func (sizes) EstimateCallCost(string, string, *celcost.AstNode, []celcost.AstNode) *celcost.CallEstimate {
	return nil
}

// EstimateSize returns the size of a name's value, or of what is in it.
func (s sizes) EstimateSize(n celcost.AstNode) *celcost.SizeEstimate {
	if !s.usual || len(n.Path()) == 0 {
		return nil
	}
	switch n.Type().Kind() {
	case types.StringKind:
		return &celcost.SizeEstimate{Max: maxText}
	case types.DynKind:
		return &celcost.SizeEstimate{Max: maxDynamic}
	case types.MapKind, types.ListKind:
		return &celcost.SizeEstimate{Max: maxEntries}
	default:
		return nil
	}
}
