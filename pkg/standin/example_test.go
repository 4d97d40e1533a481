package standin_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/memstore"
	"github.com/sluice-mesh/sluice/pkg/standin"
)

func Example() {
	hourly, _ := bucket.NewLimits(bucket.Limit{Tokens: 10, Per: time.Hour})
	main, _ := memstore.New(memstore.Options{}) // stands for a shared store here
	local, _ := memstore.New(memstore.Options{})
	s, _ := standin.New(standin.Options{Local: local, Main: main})

	seen, _ := bucket.Bucket{}.Take(hourly, time.Now(), 7)
	s.Seen([]string{"alice"}, []bucket.Bucket{seen}) // then the shared store is away

	results := make([]bucket.Result, 1)
	_ = s.Take(context.Background(), []bucket.Charge{{Key: "alice", Limits: hourly, Cost: 2}}, results)
	fmt.Println(results[0].Allowed, results[0].Remaining)

	_ = s.Close() // tells it what was spent
	fmt.Println(main.Bucket("alice", hourly).Parts(hourly)[0].Spent)
	// Output:
	// true 1
	// 2
}
