package render

import (
	"reflect"
	"regexp"
	"testing"
)

// TestShapesOfSelfDecoding: a type that decodes itself says its form, or is an object with fields.
func TestShapesOfSelfDecoding(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(of reflect.Type) {
		if seen[of] {
			return
		}
		seen[of] = true
		_, selfMade := reflect.New(of).Interface().(selfDecoding)
		_, told := reflect.New(of).Interface().(shaped)
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(of.Elem())
		case reflect.Struct:
			fields, _ := fieldsOf(of)
			told = told || len(fields) > 0
			for _, f := range fields {
				walk(of.FieldByIndex(f.index).Type)
			}
		}
		if selfMade && !told {
			t.Errorf("%s decodes itself and has no shape", of)
		}
	}
	for _, v := range []any{Fleet{}, inventoryFile{}, varsBase{}, varsEntry{}, macrosBase{}, macroEntry{}, macroBody{}, jobsBase{}, jobEntry{}, jobFile{}, stepBody{}, RunOptions{}, Line{}} {
		walk(reflect.TypeOf(v))
	}
	if len(seen) < 30 {
		t.Errorf("only %d types were looked at", len(seen))
	}
}

// TestShapePatterns holds the patterns of durations and limits against what reads them.
func TestShapePatterns(t *testing.T) {
	pattern := regexp.MustCompile((*Duration)(nil).shape().Pattern)
	for _, text := range []string{"0", "0s", "1s", "90s", "1h30m", "1h 30m", "2d", "1w", "1w2d3h", "1d12h", "1.5s", "", "5", "s", "-1s", "1x", "2d1w", "soon", "1h5"} {
		if _, err := ParseDuration(text); (err == nil) != pattern.MatchString(text) {
			t.Errorf("duration %q: the pattern says %v, the decoder %v", text, pattern.MatchString(text), err)
		}
	}
	pattern = regexp.MustCompile((*Limit)(nil).shape().Pattern)
	for _, text := range []string{"0", "1", "12", "999999", "1000000", "25%", "100%", "0%", "101%", "", "%", "x", "-1", "1.5"} {
		if _, ok := (Limit{text}).Of(10); ok != pattern.MatchString(text) {
			t.Errorf("limit %q: the pattern says %v, the decoder %v", text, pattern.MatchString(text), ok)
		}
	}
}
