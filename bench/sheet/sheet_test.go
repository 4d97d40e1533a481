package sheet_test

import (
	"fmt"
	"testing"

	"github.com/sluice-mesh/sluice/bench/sheet"
)

func ExampleTable() {
	fmt.Print(sheet.Table([]string{"what", "much"}, [][]string{{"requests", sheet.Grouped(1_000_000)}}))
	// Output:
	// | what | much |
	// |---|---|
	// | requests | 1,000,000 |
}

func TestGrouped(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{0: "0", 7: "7", 999: "999", 999.5: "1,000", 1000: "1,000", 123456: "123,456", 1e6: "1,000,000"} {
		if got := sheet.Grouped(x); got != want {
			t.Errorf("Grouped(%v) = %s, want %s", x, got, want)
		}
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	values := []float64{3, 1, 2, 5}
	if got := sheet.Median(values); got != 3 || values[0] != 3 {
		t.Errorf("Median = %v, values are %v now, want 3 and values as they were", got, values)
	}
}
