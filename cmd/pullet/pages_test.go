package main

import (
	"os"
	"strings"
	"testing"
)

// TestRolloutsPage, TestOperationsPage, TestSecretsPage, TestWebhooksPage, TestFleetPage, TestDatastorePage and
// TestEventsPage: every
// command and file that the pages show stands in a script that runs them.
func TestRolloutsPage(t *testing.T) {
	pageRuns(t, "rollouts.md", 9, "script/rollouts_page.txtar", "script/target_gone.txtar")
}

func TestEventsOutPage(t *testing.T) { pageRuns(t, "events-out.md", 7, "script/events_sinks.txtar") }

func TestOperationsPage(t *testing.T) {
	pageRuns(t, "operations.md", 12, "script/operations_page.txtar", "lab/operations.txtar")
}

func TestEventsPage(t *testing.T) { pageRuns(t, "events.md", 7, "script/events_page.txtar") }

func TestSecretsPage(t *testing.T) { pageRuns(t, "secrets.md", 3, "script/secrets_page.txtar") }

func TestWebhooksPage(t *testing.T) { pageRuns(t, "webhooks.md", 6, "script/webhooks.txtar") }

func TestFleetPage(t *testing.T) {
	pageRuns(t, "fleet.md", 7, "lab/fleet.txtar", "lab/fleet_restore.txtar", "script/datastore_recover.txtar")
}

func TestDatastorePage(t *testing.T) {
	pageRuns(t, "datastore.md", 11,
		"lab/datastore.txtar", "lab/datastore_faults.txtar", "lab/fleet.txtar", "lab/fleet_restore.txtar")
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
