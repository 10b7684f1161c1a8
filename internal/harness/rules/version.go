package rules

// Version is one commit as far as the judge of a storm knows it.
type Version struct {
	Number  int                 `json:"number"`
	ID      string              `json:"id"`
	Groups  map[string]string   `json:"groups"`            // of nodes
	Homes   map[string]string   `json:"homes"`             // the groups of their roles
	Roles   map[string]string   `json:"roles"`             // of nodes
	Limits  map[string]int      `json:"limits"`            // of groups
	Total   int                 `json:"total,omitempty"`   // 0 is no limit
	Depends map[string][]string `json:"depends,omitempty"` // of groups, on groups
	Serial  int                 `json:"serial"`            // nodes at a time at the serialized step
	Meet    map[string]string   `json:"meet,omitempty"`    // the barrier of a node
	Closed  bool                `json:"closed,omitempty"`  // maintenance windows open for canaries only
	Bad     string              `json:"bad,omitempty"`     // its failure, for people
	OnLost  string              `json:"onLost"`
}

// The steps of the jobs. A node that ran Last is done.
const (
	Work   = "work"   // alone
	Serial = "serial" // a limited number of nodes at a time
	Token  = "token"  // one node for all
	Join   = "join"   // reads the result of Token
	Meet   = "meet"   // a barrier
	Behind = "behind" // after the barrier
	Last   = "last"
)
