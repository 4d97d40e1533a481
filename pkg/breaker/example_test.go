package breaker_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-mesh/sluice/pkg/breaker"
	"github.com/sluice-mesh/sluice/pkg/bucket"
)

func Example() {
	store := steady{errors.New("no answer within 25ms")}
	b, err := breaker.New(breaker.Options{Store: store})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	charges, results := []bucket.Charge{{Key: "alice", Cost: 1}}, make([]bucket.Result, 1)
	for range 20 {
		err = b.Take(context.Background(), charges, results)
	}
	fmt.Println(err)
	fmt.Println(b.Take(context.Background(), charges, results))
	// Output:
	// no answer within 25ms
	// the store is not asked, it is away: no answer within 25ms
}
