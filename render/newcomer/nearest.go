package newcomer

import "strings"

// maxName is the longest name for which a near one is looked for.
const maxName = 200

// Nearest is the known name that a misspelt one most likely means, or "" when none is near.
func Nearest(name string, known []string) string {
	best, bestDistance := "", max(1, len(name)/3)+1
	if len(name) > maxName {
		return ""
	}
	for _, k := range known {
		if abs(len(k)-len(name)) >= bestDistance { // so many letters are to be added
			continue
		}
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// distance counts the edits between a and b: Damerau-Levenshtein, in its optimal string alignment form.
func distance(a, b string) int {
	prev2, prev := []int(nil), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
		}
		prev2, prev = prev, row
	}
	return prev[len(b)]
}

func abs(n int) int { return max(n, -n) }
