package tariff

import (
	"errors"
	"math/big"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// errTooLarge is the error for more micros than an int64 holds, some nine million
// millions of the currency.
var errTooLarge = errors.New("the amount is too large")

// cost returns quantity × price / per in micros, rounded once.
func cost(q api.Quantity, price, per int64) (int64, error) {
	return round(new(big.Int).Mul(q.Int(), big.NewInt(price)), per)
}

// Share returns the given basis points of an amount, rounded once.
func Share(micros, basisPoints int64) (int64, error) {
	return round(new(big.Int).Mul(big.NewInt(micros), big.NewInt(basisPoints)), whole)
}

// round returns n/per rounded half away from zero; per is at least 1.
func round(n *big.Int, per int64) (int64, error) {
	d := big.NewInt(per)
	q, rest := new(big.Int).QuoRem(n, d, new(big.Int))
	if rest.Abs(rest).Lsh(rest, 1).Cmp(d) >= 0 {
		q.Add(q, big.NewInt(int64(n.Sign())))
	}
	if !q.IsInt64() {
		return 0, errTooLarge
	}
	return q.Int64(), nil
}

// sum returns the sum of two amounts.
func sum(a, b int64) (int64, error) {
	s := a + b
	if a > 0 && b > 0 && s < 0 || a < 0 && b < 0 && s >= 0 {
		return 0, errTooLarge
	}
	return s, nil
}

// Prorated returns the time-proportional part of an amount, rounded once.
func Prorated(micros api.Quantity, held, whole time.Duration) (int64, error) {
	return round(micros.Int().Mul(micros.Int(), big.NewInt(int64(held))), int64(whole))
}
