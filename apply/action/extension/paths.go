package extension

import "github.com/pullet/pullet/apply"

// Paths returns the texts among the parameters. Those that are absolute paths are the only files of the program that
// are known.
func (a *extension) Paths(*apply.Host) []string {
	var out []string
	for _, value := range a.Parameters {
		if text, ok := value.(string); ok {
			out = append(out, text)
		}
	}
	return out
}
