package explain

// A Report is an explanation. Its texts are a client's in part: Text and JSON
// write them harmless.
type Report struct {
	Request string `json:"request"` // without its query
	// Domain and File are the policy's. File is empty if none has the domain.
	Domain string `json:"domain"`
	File   string `json:"file,omitempty"`
	// Identity is nil for descriptors.
	Identity *Identity `json:"identity,omitempty"`
	// Exempt is the field that exempts the request.
	Exempt   string   `json:"exempt_by,omitempty"`
	Rules    []Rule   `json:"rules"`
	Decision Decision `json:"decision"`
	Answer   Answer   `json:"answer"`
	// Advice is what to do about an identity that hardly is as meant.
	Advice []string `json:"advice,omitempty"`
}

// An Identity is who the request comes from.
type Identity struct {
	Client string `json:"client,omitempty"` // empty for a missing one
	// Caller is the network whose addresses are one caller.
	Caller   string `json:"caller,omitempty"`
	Evidence string `json:"evidence"`
	// Believed says that the headers of this peer are.
	Believed bool   `json:"headers_believed"`
	Trust    string `json:"trust"`            // proxies, hops, stamp or none
	Header   string `json:"header,omitempty"` // that trust reads
	Hops     []Hop  `json:"hops"`
	More     int    `json:"more_hops,omitempty"`
	// Named are the identities of the policy.
	Named []Value `json:"named"`
}

// A Hop is the peer, or one entry of the forwarded header.
type Hop struct {
	From    string `json:"from"` // peer, or the header's name
	Text    string `json:"text,omitempty"`
	Address string `json:"address,omitempty"`
	Verdict string `json:"verdict"`
	Client  bool   `json:"client,omitempty"`
	Why     string `json:"why"`
}

// A Value is what a request has for a name.
type Value struct {
	Name   string `json:"name"`
	Value  string `json:"value,omitempty"`
	Hidden bool   `json:"hidden,omitempty"` // there is a value, which is not told
	// Missing says why there is none, and Why that and what follows in words.
	Missing string `json:"missing,omitempty"`
	Why     string `json:"why,omitempty"`
}

// A Rule is what became of a rule.
type Rule struct {
	Name string `json:"name"`
	// Descriptor is the one that was looked at, nil for a request's rule.
	Descriptor *DescriptorPlace `json:"descriptor,omitempty"`
	Verdict    string           `json:"verdict"`
	Why        string           `json:"why"`
	Shadow     bool             `json:"shadow,omitempty"`
	Conditions []Condition      `json:"conditions,omitempty"`
	Per        []Value          `json:"per,omitempty"`
	// Override is the field of the override that holds.
	Override string `json:"override,omitempty"`
	Stop     bool   `json:"stop,omitempty"`
	// Bucket is nil unless the rule applies and was decided upon.
	Bucket *Bucket `json:"bucket,omitempty"`
}

// A DescriptorPlace is one of a request's descriptors.
type DescriptorPlace struct {
	Index int    `json:"index"`
	Text  string `json:"text"`
}

// A Condition is one thing that a rule wants.
type Condition struct {
	Field string `json:"field"`
	Want  string `json:"want"`
	Found string `json:"found"`
	Holds bool   `json:"holds"`
	Error string `json:"error,omitempty"`
}

// A Bucket is what a rule would charge.
type Bucket struct {
	Key       string `json:"key"`
	Cost      int64  `json:"cost"`
	Unlimited bool   `json:"unlimited,omitempty"`
	// Room says that the cost is there, Wait when it will be: nil for now or
	// for never.
	Room   bool     `json:"room"`
	Wait   *float64 `json:"wait_seconds,omitempty"`
	Limits []Limit  `json:"limits,omitempty"`
	// Lease is nil where no tokens are taken ahead.
	Lease *Lease `json:"lease,omitempty"`
	// Local says that the store of this process alone was asked.
	Local bool `json:"local,omitempty"`
	// Failed is why no store could say.
	Failed string `json:"failed,omitempty"`
}

// A Limit is one limit of a bucket, and how it stands before the charge.
type Limit struct {
	Name   string `json:"name,omitempty"`
	Rate   string `json:"rate"`
	Refill string `json:"refill"`
	Zone   string `json:"zone,omitempty"`
	Burst  int64  `json:"burst"`
	// Left and Full are nil where they could not be had.
	Left *int64   `json:"left,omitempty"`
	Full *float64 `json:"full_in_seconds,omitempty"`
}

// A Lease is how much a replica takes ahead at a time, and for how long, at most.
type Lease struct {
	Tokens int64   `json:"tokens"`
	For    float64 `json:"for_seconds"`
}

// A Decision is what would become of the request.
type Decision struct {
	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason"`
	Rule    string `json:"rule,omitempty"`    // that decides
	Missing string `json:"missing,omitempty"` // the name for which it is refused
	// Shadow are the rules in shadow that would have denied it.
	Shadow []string `json:"shadow_denied,omitempty"`
	// Store is why the store failed, in a word.
	Store string `json:"store_failed,omitempty"`
	Local bool   `json:"local,omitempty"`
}

// An Answer is what the client would get.
type Answer struct {
	Status  int      `json:"status"`
	GRPC    int      `json:"grpc_code"`
	Headers []Header `json:"headers"`
	Body    string   `json:"body,omitempty"`
	// Note says which part of it is not ours to say.
	Note string `json:"note,omitempty"`
}
