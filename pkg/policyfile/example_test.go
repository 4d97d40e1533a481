package policyfile_test

import (
	"fmt"
	"testing/fstest"

	"github.com/sluice-mesh/sluice/pkg/policyfile"
)

func ExampleLoad() {
	files := fstest.MapFS{"edge.yaml": {Data: []byte(`
domain: edge
rules:
  - name: api
    per: [ip]
    limits: [{rate: 20/10q}, {rate: 100/1h, brust: 5}]
`)}}
	set, faults := policyfile.Load(policyfile.Options{FS: files, Paths: []string{"edge.yaml"}})
	fmt.Println(set != nil)
	fmt.Println(faults)
	// Output:
	// false
	// edge.yaml:6:21: rules[0].limits[0].rate: found "20/10q", want tokens and a period, such as 20/10s; the units are ms, s, m, h, d and w
	// edge.yaml:6:45: rules[0].limits[1].brust: found an unknown field, want one of burst, name, rate, refill, zone; did you mean "burst"?
}
