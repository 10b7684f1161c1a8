package gitrules

import "testing"

// TestFilters: attributes are read as git reads them: later lines and deeper files win, and macros have what they
// stand for.
func TestFilters(t *testing.T) {
	t.Parallel()
	files := []string{"files/a.key", "files/deep/b.key", "files/plain", "x.key"}
	for name, c := range map[string]struct {
		attributes map[string]string
		want       string
	}{
		"none":           {nil, ""},
		"others":         {map[string]string{".gitattributes": "*.key text eol=lf diff=crypt\n# *.key filter=x\n"}, ""},
		"lfs":            {map[string]string{".gitattributes": "*.key filter=lfs diff=lfs merge=lfs -text\n"}, ""},
		"all":            {map[string]string{".gitattributes": "*.key filter=git-crypt diff=git-crypt\n"}, "files/a.key git-crypt"},
		"of a directory": {map[string]string{"files/.gitattributes": "/deep/** filter=ansible-vault\n"}, "files/deep/b.key ansible-vault"},
		"taken back":     {map[string]string{".gitattributes": "* filter=crypt\n*.key !filter\nfiles/plain -filter\n"}, ""},
		"taken back below": {map[string]string{
			".gitattributes": "files/** filter=crypt\n", "files/.gitattributes": "* !filter\n", "files/deep/.gitattributes": "b.key filter=again\n",
		}, "files/deep/b.key again"},
		"a macro":                     {map[string]string{".gitattributes": "[attr]sealed filter=seal -diff\n", "files/.gitattributes": "*.key sealed\n"}, "files/a.key seal"},
		"a line that git leaves out":  {map[string]string{".gitattributes": "*.key bad^name\nx.key filter=f\n"}, "x.key f"},
		"a line of a directory alone": {map[string]string{".gitattributes": "* filter=lfs\nfiles/ filter=crypt\n"}, ""},
		"a line without a pattern":    {map[string]string{".gitattributes": "\"\"\n* filter=crypt\n"}, "files/a.key crypt"},
		"matches nothing":             {map[string]string{".gitattributes": "*.pem filter=crypt\n"}, ""},
	} {
		texts := map[string][]byte{}
		for file := range c.attributes {
			texts[file] = []byte(c.attributes[file])
		}
		got := ""
		filters, err := ReadFilters(texts)
		must(t, err)
		f, is, err := filters.First(t.Context(), files, NotLFS)
		must(t, err)
		if is {
			got = f.Name + " " + f.Filter
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
