package render

import (
	"errors"
	"fmt"
	"reflect"
)

// The functions of expr that take a map apart do it in Go's order, which is another each time: the same catalog would have another digest.
// These take their place.

// entriesOf is a map as forEach takes it: a list, sorted by key.
func entriesOf(m any) ([]any, error) {
	v := reflect.ValueOf(m)
	if v.Kind() != reflect.Map {
		return nil, fmt.Errorf("expected a map, found %T", m)
	}
	return mapEntries(v), nil
}

func sortedKeys(m any) ([]any, error) { return ofEntries(m, func(k, _ any) any { return k }) }

func sortedValues(m any) ([]any, error) { return ofEntries(m, func(_, v any) any { return v }) }

func sortedPairs(m any) ([]any, error) {
	return ofEntries(m, func(k, v any) any { return []any{k, v} })
}

func ofEntries(m any, pick func(key, value any) any) ([]any, error) {
	list, err := entriesOf(m)
	for i, e := range list {
		if pair, ok := e.(map[string]any); ok {
			list[i] = pick(pair["key"], pair["value"])
		}
	}
	return list, err
}

// withoutClock is the environment of what is evaluated while a catalog is compiled: it is the same at any time.
func withoutClock(env map[string]any) map[string]any {
	env["now"] = func() (any, error) {
		return nil, errors.New("a catalog is the same at any time: ask for the time in conditions.when")
	}
	return env
}
