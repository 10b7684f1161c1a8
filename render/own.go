package render

import (
	"maps"
	"reflect"
)

// Functions such as set change the map that they are given. What roots hand out is shared by all files and hosts of a
// catalog, so a file that calls such a function gets values of its own: what it changes is gone with it.

// changers are the functions that change a map.
var changers = []string{"set", "unset", "merge", "mergeOverwrite"}

// begin makes the values of the roots those of one file, which is executed until end is called.
func (s *scope) begin(src *source) (end func()) {
	outer, around := s.private, s.src
	s.private, s.src = nil, src
	if src.changes {
		s.private = map[string]any{}
	}
	return func() { s.private, s.src = outer, around }
}

// ownRoot is the value of a root, which the file that is executed may change where it changes maps at all.
func (s *scope) ownRoot(name string, shared any) any {
	if s.private == nil {
		return shared
	}
	if _, made := s.private[name]; !made {
		s.private[name] = ownCopy(shared)
	}
	return s.private[name]
}

// ownResult is a step's result with data of its own.
func (s *scope) ownResult(r StepResult) StepResult {
	if s.private == nil {
		return r
	}
	r.Data, r.ByNode = ownCopy(r.Data), maps.Clone(r.ByNode)
	for name, one := range r.ByNode {
		r.ByNode[name] = s.ownResult(one)
	}
	return r
}

// ownCopy is a value with maps and lists of its own.
func ownCopy(v any) any {
	if v == nil {
		return nil
	}
	return copied(reflect.ValueOf(v)).Interface()
}
