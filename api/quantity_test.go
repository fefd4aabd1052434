package api

import (
	"encoding/json"
	"math"
	"math/big"
	"testing"
)

func TestQuantity(t *testing.T) {
	large := Product(math.MaxInt64, math.MaxInt64)
	want := new(big.Int).Mul(big.NewInt(math.MaxInt64), big.NewInt(math.MaxInt64))
	if large.Int().Cmp(want) != 0 || large.Plus(Units(1)).Minus(large) != Units(1) || !Units(math.MaxInt64).Less(large) || large.Less(large) ||
		!(Quantity{}).IsZero() || large.IsZero() || math.Abs(large.Float()/math.Pow(2, 126)-1) > 1e-15 {
		t.Errorf("arithmetic of quantity %s is wrong, want the same as with big.Int", large)
	}
}

// FuzzQuantity parses digits and checks that an accepted number is written back
// unchanged.
func FuzzQuantity(f *testing.F) {
	for _, s := range []string{"0", "1", "9223372036854775808", "340282366920938463463374607431768211455", "340282366920938463463374607431768211456", "-1", "1e3", "1.5", "null", `"1"`, "00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var q Quantity
		if err := json.Unmarshal([]byte(s), &q); err != nil || !json.Valid([]byte(s)) {
			return
		}
		n, ok := new(big.Int).SetString(q.String(), 10)
		raw, err := json.Marshal(q)
		if !ok || n.Sign() < 0 || n.BitLen() > 128 || err != nil || string(raw) != q.String() {
			t.Errorf("quantity %q is read as %s and written as %s, error %v", s, q, raw, err)
		}
		var again Quantity
		if err := json.Unmarshal(raw, &again); err != nil || again != q {
			t.Errorf("quantity %s read back = %s, error %v", q, again, err)
		}
	})
}
