package render

import (
	"fmt"
	"reflect"
)

// entriesOf is a map as forEach takes it: a list, sorted by key.
func entriesOf(m any) ([]any, error) {
	v := reflect.ValueOf(m)
	if v.Kind() != reflect.Map {
		return nil, fmt.Errorf("expected a map, found %T", m)
	}
	return mapEntries(v), nil
}
