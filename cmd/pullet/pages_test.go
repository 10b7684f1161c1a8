package main

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// TestRolloutsPage, TestOperationsPage, TestSecretsPage, TestWebhooksPage, TestFleetPage, TestDatastorePage,
// TestMonitoringPage and TestEventsPage: every
// command and file that the pages show stands in a script that runs them.
func TestRolloutsPage(t *testing.T) {
	pageRuns(t, "rollouts.md", 9, "script/rollouts_page.txtar")
	pageRuns(t, "migrations.md", 3, "script/rollouts_page.txtar", "script/target_gone.txtar")
	pageRuns(t, "waits.md", 1, "script/rollouts_page.txtar")
}

func TestEventsOutPage(t *testing.T) { pageRuns(t, "events-out.md", 7, "script/events_sinks.txtar") }

func TestOperationsPage(t *testing.T) {
	pageRuns(t, "operations.md", 12, "script/operations_page.txtar", "lab/operations.txtar")
}

func TestEventsPage(t *testing.T) { pageRuns(t, "events.md", 7, "script/events_page.txtar") }

func TestFromOtherToolsPage(t *testing.T) {
	pageRuns(t, "from-other-tools.md", 10, "script/from_other_tools.txtar")
}

func TestSharePage(t *testing.T) { pageRuns(t, "share.md", 2, "script/share_page.txtar") }

func TestSecretsPage(t *testing.T) { pageRuns(t, "secrets.md", 3, "script/secrets_page.txtar") }

func TestWebhooksPage(t *testing.T) { pageRuns(t, "webhooks.md", 6, "script/webhooks.txtar") }

func TestMonitoringPage(t *testing.T) { pageRuns(t, "monitoring.md", 4, "script/metrics.txtar") }

// TestRunbooks: each alert is on the page, says what to type and leads to a part of a page that is there.
func TestRunbooks(t *testing.T) {
	var all struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Annotations struct {
					Summary, Description string
					RunbookURL           string `yaml:"runbook_url"`
				}
			}
		}
	}
	text, err := os.ReadFile("../../docs/monitoring/alerts.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &all)
	}
	page, unread := os.ReadFile("../../docs/monitoring.md")
	if err = errors.Join(err, unread); err != nil || len(all.Groups) != 1 || len(all.Groups[0].Rules) < 10 {
		t.Fatal(err, len(all.Groups))
	}
	command := regexp.MustCompile(`\bpullet ((?:[a-z-]+ ?){1,2})`)
	for _, rule := range all.Groups[0].Rules {
		file, anchor, _ := strings.Cut(strings.TrimPrefix(rule.Annotations.RunbookURL, "https://github.com/pullet/pullet/blob/main/"), "#")
		runbook, err := os.ReadFile("../../" + file)
		titles := strings.ReplaceAll(strings.ToLower(string(runbook)), " ", "-")
		if err != nil || anchor == "" || !regexp.MustCompile(`(?m)^#+-`+regexp.QuoteMeta(anchor)+`\??$`).MatchString(titles) {
			t.Errorf("%s: there is no %s#%s: %v", rule.Alert, file, anchor, err)
		}
		if !strings.Contains(string(page), "`"+rule.Alert+"`") || rule.Annotations.Summary == "" {
			t.Errorf("%s is not on the page, or has no summary", rule.Alert)
		}
		typed := command.FindAllStringSubmatch(rule.Annotations.Description, -1)
		if len(typed) == 0 {
			t.Errorf("%s does not say what to type", rule.Alert)
		}
		for _, one := range typed {
			if c, _, err := (&app{}).root().Find(strings.Fields(one[1])); err != nil || !c.HasParent() {
				t.Errorf("%s: there is no pullet %s", rule.Alert, one[1])
			}
		}
	}
}

func TestFleetPage(t *testing.T) {
	pageRuns(t, "fleet.md", 7, "lab/fleet.txtar", "lab/fleet_restore.txtar", "script/datastore_recover.txtar")
}

func TestDatastorePage(t *testing.T) {
	pageRuns(t, "datastore.md", 11,
		"lab/datastore.txtar", "lab/datastore_faults.txtar", "lab/fleet.txtar", "lab/fleet_restore.txtar")
}

func TestPackagesPage(t *testing.T) {
	pageRuns(t, "packages.md", 5, "lab/package.txtar", "lab/datastore.txtar", "lab/datastore_faults.txtar")
}

// TestCrontab: doctor knows the crontab of docs/node.md, and a script runs its command with a shorter splay.
func TestCrontab(t *testing.T) {
	page, err := os.ReadFile("../../docs/node.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\n## cron\n")
	_, rest, _ = strings.Cut(rest, "```\n")
	crontab, _, found := strings.Cut(rest, "```")
	_, command, named := strings.Cut(strings.TrimSpace(crontab), " root ")
	if !found || !named {
		t.Fatalf("docs/node.md has no crontab: %q", crontab)
	}
	for script, want := range map[string]string{
		"doctor": "--\n" + crontab, "pull_cron": "exits 0 " + strings.Replace(command, "--splay 4m", "--splay 1ms", 1) + "\n",
	} {
		if text, err := os.ReadFile("testdata/script/" + script + ".txtar"); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("script %s does not have %q: %v", script, want, err)
		}
	}
}

// pageRuns looks for each command and each file of a page in scripts. The page has so many blocks at least.
func pageRuns(t *testing.T, page string, least int, scripts ...string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	var script string
	for _, name := range scripts {
		one, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		script += string(one)
	}
	blocks := strings.Split(string(text), "```")
	if len(blocks)/2 < least {
		t.Fatalf("only %d blocks", len(blocks)/2)
	}
	for i := 1; i < len(blocks); i += 2 {
		kind, block, _ := strings.Cut(blocks[i], "\n")
		if kind != "sh" {
			if !strings.Contains(script, "--\n"+block) {
				t.Errorf("no file of the scripts begins with\n%s", block)
			}
			continue
		}
		for line := range strings.Lines(block) {
			command, _, _ := strings.Cut(line, "  #")
			command = strings.TrimSpace(command)
			if command != "" && !strings.Contains(script, " "+command+"\n") {
				t.Errorf("the scripts do not run %q", command)
			}
		}
	}
}
