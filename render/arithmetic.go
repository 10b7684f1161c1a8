package render

import (
	"errors"
	"math/big"
)

// computed folds whole numbers into one; what does not fit into 64 bits is a mistake.
func computed(with func(sum, next *big.Int) error, args ...any) (int64, error) {
	sum := new(big.Int)
	for i, arg := range args {
		n, err := wholeNumber(arg)
		if err != nil {
			return 0, err
		}
		if i == 0 {
			sum.SetInt64(n)
		} else if err := with(sum, big.NewInt(n)); err != nil {
			return 0, err
		}
	}
	if !sum.IsInt64() {
		return 0, errors.New("the result is too large for a whole number")
	}
	return sum.Int64(), nil
}

func add(args ...any) (int64, error) {
	return computed(func(sum, next *big.Int) error { sum.Add(sum, next); return nil }, args...)
}

func sub(a, b any) (int64, error) {
	return computed(func(sum, next *big.Int) error { sum.Sub(sum, next); return nil }, a, b)
}

func mul(a any, others ...any) (int64, error) {
	return computed(func(sum, next *big.Int) error { sum.Mul(sum, next); return nil }, append([]any{a}, others...)...)
}

var errByZero = errors.New("division by zero")

func div(a, b any) (int64, error) {
	return computed(func(sum, next *big.Int) error {
		if next.Sign() == 0 {
			return errByZero
		}
		sum.Quo(sum, next)
		return nil
	}, a, b)
}

func mod(a, b any) (int64, error) {
	return computed(func(sum, next *big.Int) error {
		if next.Sign() == 0 {
			return errByZero
		}
		sum.Rem(sum, next)
		return nil
	}, a, b)
}

func largest(a any, others ...any) (int64, error) {
	return computed(func(sum, next *big.Int) error {
		if sum.Cmp(next) < 0 {
			sum.Set(next)
		}
		return nil
	}, append([]any{a}, others...)...)
}

func smallest(a any, others ...any) (int64, error) {
	return computed(func(sum, next *big.Int) error {
		if sum.Cmp(next) > 0 {
			sum.Set(next)
		}
		return nil
	}, append([]any{a}, others...)...)
}
