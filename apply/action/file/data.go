package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
)

// encode writes values in a format, always in the same way: keys are sorted.
func encode(data any, format, name string) ([]byte, error) {
	if format == "" {
		format = map[string]string{".json": "json", ".yaml": "yaml", ".yml": "yaml", ".ini": "ini"}[path.Ext(name)]
	}
	var out []byte
	var err error
	switch format {
	case "json":
		out, err = encodeJSON(data)
	case "yaml":
		out, err = yaml.Dump(render.PlainNumbers(data), yaml.WithV3Defaults(), yaml.WithIndent(2))
	case "ini":
		out, err = encodeINI(data)
	default:
		return nil, apply.BadParam(
			"data",
			"%s does not tell the format: add format: json, yaml or ini",
			path.Base(name),
		)
	}
	if err != nil {
		return nil, &apply.ParamError{Param: "data", Err: err}
	}
	return out, nil
}

func encodeJSON(data any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(data); err != nil {
		return nil, fmt.Errorf("cannot be written as JSON: %w", err)
	}
	return out.Bytes(), nil
}

// encodeINI writes keys of no section first, then the sections. A list is a key that stands there several times;
// nothing is a key alone.
func encodeINI(data any) ([]byte, error) {
	top, ok := data.(map[string]any)
	if !ok {
		return nil, errors.New("an ini file has keys and sections: expected a map")
	}
	var out strings.Builder
	for _, key := range slices.Sorted(maps.Keys(top)) {
		if _, section := top[key].(map[string]any); !section {
			if err := iniKey(&out, key, top[key]); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(top)) {
		section, ok := top[name].(map[string]any)
		if !ok {
			continue
		}
		if name == "" || strings.ContainsAny(name, "]\n\r") {
			return nil, fmt.Errorf("%q cannot be the name of a section", name)
		}
		if out.Len() > 0 {
			out.WriteString("\n")
		}
		fmt.Fprintf(&out, "[%s]\n", name)
		for _, key := range slices.Sorted(maps.Keys(section)) {
			if err := iniKey(&out, key, section[key]); err != nil {
				return nil, fmt.Errorf("section %s: %w", name, err)
			}
		}
	}
	return []byte(out.String()), nil
}

// iniKey writes a key with its value, or with each of its values.
func iniKey(out *strings.Builder, key string, value any) error {
	if key == "" || strings.TrimSpace(key) != key || strings.ContainsAny(key, "=\n\r") ||
		strings.ContainsAny(key[:1], "[#;") {
		return fmt.Errorf("%q cannot be a key of an ini file", key)
	}
	values, list := value.([]any)
	if !list {
		values = []any{value}
	}
	for _, v := range values {
		switch v.(type) {
		case nil:
			fmt.Fprintf(out, "%s\n", key)
			continue
		case map[string]any, []any:
			return fmt.Errorf("key %s: an ini file has no maps and lists in sections", key)
		}
		text := fmt.Sprint(v)
		if number, ok := v.(float64); ok {
			text = strconv.FormatFloat(number, 'f', -1, 64)
		}
		if strings.ContainsAny(text, "\n\r") {
			return fmt.Errorf("key %s: a value of an ini file is one line", key)
		}
		fmt.Fprintf(out, "%s = %s\n", key, text)
	}
	return nil
}
