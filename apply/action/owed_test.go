package action_test

import (
	"strings"
	"testing"

	"github.com/pullet/pullet/apply/action/actiontest"
)

// TestOwed: a step reacts to a change of what it watches, in whichever pull it can at last, and once.
func TestOwed(t *testing.T) {
	t.Parallel()
	log := "test ! -e bad && cat etc/site.conf >>log"
	job := func(content string, svc ...string) string {
		return text("", append([]string{conf("conf", "/etc/site.conf", content)}, svc...)...)
	}
	wait := "{name: wait, action: service.wait, parameters: {name: db, timeout: 1ms, interval: 1ms}}"
	waiting := func(content string) string {
		return job(content, wait, reacts("svc", log, "watch: [conf]", "require: [wait]"))
	}
	db := actiontest.Fleet{{Name: "db", Node: "db1", Ready: true}}
	pruned := reacts("reload", "echo run >>log")
	dropped := func(steps ...string) string { return text(prunes, append(steps, pruned)...) }
	watched := text(prunes, conf("f", "/etc/app/f.conf", "x"), strings.Replace(pruned, "}}", "}, watch: [f]}", 1))
	quiet := conf("g", "/etc/g.conf", "x")
	for _, c := range []history{
		{name: "it had to wait",
			pulls: []pull{{job: waiting("one "), fleet: db}, {job: waiting("two "), fleet: actiontest.Fleet{}}, {job: waiting("two "), fleet: db, again: true}, {job: waiting("two "), fleet: db, again: true}},
			told:  "a/conf ok, a/wait ok, a/svc ok", want: map[string]string{"log": "one two "}},
		{name: "it failed, and fails", pulls: []pull{
			{job: job("one ", reacts("svc", log, "watch: [conf]"))}, {job: job("two ", reacts("svc", log, "watch: [conf]")), sh: "touch bad"},
			{job: job("two ", reacts("svc", log, "watch: [conf]")), again: true}},
			told: "a/conf ok, a/svc failed", want: map[string]string{"log": "one "}},
		{name: "it failed, and is well again", pulls: []pull{
			{job: job("one ", reacts("svc", log, "watch: [conf]"))}, {job: job("two ", reacts("svc", log, "watch: [conf]")), sh: "touch bad"},
			{job: job("two ", reacts("svc", log, "watch: [conf]")), sh: "rm bad", again: true}, {job: job("two ", reacts("svc", log, "watch: [conf]")), again: true}},
			told: "a/conf ok, a/svc ok", want: map[string]string{"log": "one two "}},
		{name: "it listens and failed", pulls: []pull{
			{job: job("one ", reacts("svc", log, "listen: [conf]"))}, {job: job("two ", reacts("svc", log, "listen: [conf]")), sh: "touch bad"},
			{job: job("two ", reacts("svc", log, "listen: [conf]")), sh: "rm bad", again: true}, {job: job("two ", reacts("svc", log, "listen: [conf]")), again: true}},
			told: "a/conf ok, a/svc ok", want: map[string]string{"log": "one two "}},
		{name: "cut off behind the change, and another version came", pulls: []pull{
			{job: job("one ", reacts("svc", log, "watch: [conf]"))}, {job: job("two ", reacts("svc", log, "watch: [conf]")), cut: "conf"},
			{job: job("two ", sh("more", "true"), reacts("svc", log, "watch: [conf]"))}},
			told: "a/conf ok, a/more changed, a/svc changed", want: map[string]string{"log": "one two "}},
		{name: "cut off behind a removal",
			pulls: []pull{{job: watched}, {job: dropped(), cut: "prune file /etc/app/f.conf"}, {job: dropped(), again: true}, {job: dropped(), again: true}},
			told:  "a/reload ok", want: map[string]string{"log": "run\nrun\n", "etc/app/f.conf": gone}},
		{name: "cut off behind a removal, and another version came",
			pulls: []pull{{job: watched}, {job: dropped(), cut: "prune file /etc/app/f.conf"}, {job: dropped(conf("g", "/etc/g.conf", "x"))}, {job: dropped(conf("g", "/etc/g.conf", "x")), again: true}},
			told:  "a/g ok, a/reload ok", want: map[string]string{"log": "run\nrun\n"}},
		{name: "cut off behind a removal, when it had reacted to something else before",
			pulls: []pull{
				{job: watched}, {job: text(prunes, quiet, strings.Replace(pruned, "}}", "}, watch: [g]}", 1)), cut: "prune file /etc/app/f.conf"},
				{job: text(prunes, quiet, strings.Replace(pruned, "}}", "}, watch: [g]}", 1)), again: true},
				{job: text(prunes, quiet, strings.Replace(pruned, "}}", "}, watch: [g]}", 1)), again: true}},
			told: "a/g ok, a/reload ok", want: map[string]string{"log": "run\nrun\nrun\n"}},
		{name: "it is tried again as often as it says",
			pulls: []pull{{job: job("x", reacts("svc", "echo run >>log; false", "watch: [conf]", "runOptions: {retry: {interval: 1ms, limit: 3}}"))}},
			told:  "a/conf changed, a/svc failed", want: map[string]string{"log": "run\nrun\nrun\n"}},
	} {
		c.check(t)
	}
}
