package file

import (
	"context"
	"fmt"
	"strings"

	"github.com/pullet/pullet/apply"
)

// Block is a text between two marker lines of a file. What stands between them is replaced as a whole; all other bytes
// stay as they are. Where the markers are missing, they are added with the block. The lines end as those of the file
// do.
//
// With state: absent, the block and its markers are removed. A marker that stands there twice, or alone, is an error.
//
// Example:
//
//	steps:
//	  - name: hosts of the cluster
//	    action: file.block
//	    parameters:
//	      name: /etc/hosts
//	      marker: the cluster
//	      content: |
//	        192.0.2.10 db1
//	        192.0.2.11 db2
type Block struct {
	Editing  `yaml:",inline"`
	Content  *string `yaml:"content"`  // the text itself
	Source   string  `yaml:"source"`   // a file below files/ of the repository
	Template bool    `yaml:"template"` // execute the source as a template
	// what the marker lines say behind BEGIN and END: another one for each block of a file; default pullet
	Marker  string `yaml:"marker"`
	Comment string `yaml:"comment"`                      // what comments of the file begin with; default #
	Begin   string `yaml:"begin"`                        // the whole first marker line, instead of comment and marker
	End     string `yaml:"end"`                          // the whole last marker line
	State   string `yaml:"state" words:"present absent"` // whether the block is there
	Where   `yaml:",inline"`

	begin, end string
	want       []string
}

// Bind reads the content and makes the markers.
func (a *Block) Bind(b apply.Binding) error {
	if err := apply.AbsPath("name", a.Name); err != nil {
		return err
	}
	if err := a.Placing.CheckParams(); err != nil {
		return err
	}
	if err := a.markers(); err != nil {
		return err
	}
	if err := a.Where.bind(); err != nil {
		return err
	}
	gone, none := a.State == absent, a.Content == nil && a.Source == ""
	switch {
	case a.Content != nil && a.Source != "":
		return apply.BadParam("source", "content and source exclude each other: keep one")
	case a.Template && a.Source == "":
		return apply.BadParam("template", "only a source can be a template: content is rendered with the job")
	case gone && a.Create:
		return apply.BadParam("create", "makes no sense with state: absent")
	case none && !gone:
		return apply.BadParam("content", "content is missing, or source")
	case none:
		return nil
	}
	return a.read(b)
}

func (a *Block) read(b apply.Binding) error {
	param, data := "content", []byte(nil)
	if a.Content != nil {
		data = []byte(*a.Content)
	} else {
		var err error
		if data, err = b.Source(a.Source, a.Template); err != nil {
			return err
		}
		param = "source"
	}
	a.want = nil
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		switch {
		case strings.ContainsRune(line, 0):
			return apply.BadParam(param, "is no text: it has a zero byte")
		case a.isBegin(line) || a.isEnd(line):
			return apply.BadParam(param, "a marker line stands in it: %s", line)
		}
		a.want = append(a.want, line)
	}
	return nil
}

// markers makes the two marker lines.
func (a *Block) markers() error {
	if (a.Begin == "") != (a.End == "") {
		return apply.BadParam(
			map[bool]string{true: "begin", false: "end"}[a.End == ""],
			"begin and end go together: the other is missing",
		)
	}
	if a.Begin != "" && (a.Marker != "" || a.Comment != "") {
		return apply.BadParam("begin", "begin and end are whole lines: marker and comment say nothing then")
	}
	a.begin, a.end = a.Begin, a.End
	if a.Begin == "" {
		marker, comment := a.Marker, a.Comment
		if marker == "" {
			marker = "pullet"
		}
		if comment == "" {
			comment = "#"
		}
		a.begin, a.end = comment+" BEGIN "+marker, comment+" END "+marker
	}
	switch {
	case strings.ContainsAny(a.begin+a.end, "\n\r\x00"):
		return apply.BadParam("marker", "a marker is one line")
	case strings.TrimSpace(a.begin) == strings.TrimSpace(a.end):
		return apply.BadParam("end", "begin and end are the same line")
	}
	return nil
}

func (a *Block) isBegin(l string) bool { return strings.TrimSpace(l) == strings.TrimSpace(a.begin) }

func (a *Block) isEnd(l string) bool { return strings.TrimSpace(l) == strings.TrimSpace(a.end) }

// Manages is the block.
func (a *Block) Manages() []apply.Resource {
	return a.part("block "+a.begin, "file.block", a.State == absent, map[string]any{"begin": a.begin, "end": a.end})
}

// Check says how the text would change.
func (a *Block) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	return a.check(h, a.edit)
}

// Apply changes the text.
func (a *Block) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	return apply.Output{}, a.apply(ctx, h, a.edit)
}

func (a *Block) edit(t *text) (string, error) {
	first, last, err := a.find(t)
	switch {
	case err != nil:
		return "", err
	case first < 0 && a.State == absent:
		return "", nil
	case a.State == absent:
		t.lines = append(t.lines[:first:first], t.lines[last+1:]...)
		return "remove the block", nil
	case first >= 0:
		return a.replace(t, first, last), nil
	}
	at, err := a.Where.place(t)
	if err == nil {
		t.insert(at, append(append([]string{a.begin}, a.want...), a.end)...)
	}
	return "add the block", err
}

// find gives the marker lines; -1 where there are none.
func (a *Block) find(t *text) (first, last int, err error) {
	begins, ends := t.matching(a.isBegin), t.matching(a.isEnd)
	switch {
	case len(begins) == 0 && len(ends) == 0:
		return -1, -1, nil
	case len(begins) > 1 || len(ends) > 1:
		return 0, 0, fmt.Errorf(
			"the marker stands there more than once: %q %s, %q %s",
			a.begin,
			numbers(begins),
			a.end,
			numbers(ends),
		)
	case len(ends) == 0:
		return 0, 0, fmt.Errorf("line %d begins the block (%s), and no line ends it (%s)", begins[0]+1, a.begin, a.end)
	case len(begins) == 0 || begins[0] > ends[0]:
		return 0, 0, fmt.Errorf(
			"line %d ends the block (%s), and no line before it begins it (%s)",
			ends[0]+1,
			a.end,
			a.begin,
		)
	}
	return begins[0], ends[0], nil
}

// numbers are lines as people count them.
func numbers(lines []int) string {
	var out []string
	for _, n := range lines {
		out = append(out, fmt.Sprint(n+1))
	}
	return "in line " + strings.Join(out, ", ")
}

// replace gives the block its lines, unless it has them.
func (a *Block) replace(t *text, first, last int) string {
	have := t.lines[first+1 : last]
	same := len(have) == len(a.want)
	for i := 0; same && i < len(have); i++ {
		same = have[i].text == a.want[i]
	}
	if same {
		return ""
	}
	rest := append([]textLine(nil), t.lines[last:]...)
	t.lines = t.lines[:first+1]
	for _, l := range a.want {
		t.lines = append(t.lines, textLine{l, t.end})
	}
	t.lines = append(t.lines, rest...)
	return "replace the block"
}
