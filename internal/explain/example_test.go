package explain_test

import (
	"context"
	"fmt"
	"os"
	"testing/fstest"

	"github.com/sluice-mesh/sluice/internal/explain"
	"github.com/sluice-mesh/sluice/pkg/memstore"
	"github.com/sluice-mesh/sluice/pkg/policyfile"
)

func Example() {
	files := fstest.MapFS{"edge.yaml": {Data: []byte(`
domain: edge
rules:
  - name: api
    match: {path: /api/*}
    per: [ip]
    limits: [{rate: 20/10s}]
`)}}
	set, _ := policyfile.Load(policyfile.Options{Paths: []string{"edge.yaml"}, FS: files})
	store, _ := memstore.New(memstore.Options{})
	report, err := explain.Explain(context.Background(), explain.Options{Set: set, Store: store}, explain.Request{
		Path: "/api/x", Peer: "10.0.0.5", Headers: []explain.Header{{Name: "x-forwarded-for", Value: "203.0.113.7"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := report.Text(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// GET /api/x
	// domain edge (edge.yaml)
	//
	// identity
	//   client   10.0.0.5, the direct peer
	//   headers  not believed, unless believe: always
	//
	// hops               trust: none
	//   peer             10.0.0.5     trust names nobody, so the peer is the client
	//   x-forwarded-for  203.0.113.7  not read: anybody may have written it
	//
	// rules
	//   api  applies  every condition holds
	//                 match.path /api/*
	//                 per ip: 10.0.0.5
	//                 bucket {LaQQmAWw}4:edge3:api2:ip8:10.0.0.5
	//                 20/10s greedy, burst 20: full
	//                 cost 1: there is room
	//
	// decision
	//   allowed  within: by api
	//
	// answer
	//   200
	//   X-RateLimit-Limit: 20
	//   X-RateLimit-Remaining: 19
	//   X-RateLimit-Reset: 1
	//
	// advice
	//   x-forwarded-for was sent, and is not believed. If the peer is a proxy of yours that sets it, say so: trust.proxies: [10.0.0.5/32]
}
