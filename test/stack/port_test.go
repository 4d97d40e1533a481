package stack_test

import (
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/sluice-mesh/sluice/test/stack"
)

func TestReservePortIsNobodyElses(t *testing.T) {
	t.Parallel()
	const n = 40
	ports := make([]*stack.Port, n)
	var wg sync.WaitGroup
	for i := range ports {
		wg.Go(func() {
			p, err := stack.ReservePort(20000)
			if err != nil {
				t.Error(err)
				return
			}
			ports[i] = p
		})
	}
	wg.Wait()
	seen := map[int]bool{}
	for _, p := range ports {
		if p == nil {
			continue
		}
		if seen[p.Number] {
			t.Errorf("ReservePort(20000) = %d twice, want another port", p.Number)
		}
		seen[p.Number] = true
		if l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", p.Number)); err == nil {
			t.Errorf("port %d is free, want it held", p.Number)
			l.Close()
		}
		if err := p.Release(); err != nil {
			t.Error(err)
		}
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", p.Number))
		if err != nil {
			t.Errorf("after Release: %v", err)
			continue
		}
		l.Close()
	}
}
