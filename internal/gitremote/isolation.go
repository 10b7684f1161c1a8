package gitremote

import (
	"context"
	"encoding/json"
	"os"
	"time"
)

// Isolation runs a child as fetches do, and says what keeps it from being
// separated as far as it could be; nothing is as it should be.
func Isolation(ctx context.Context) (lacks []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	c := child{task: task{Do: taskNothing, Limits: Limits{Time: time.Minute}.Whole()}}
	if os.Geteuid() != 0 {
		lacks = append(
			lacks,
			"pullet does not run as root: the process that reads git objects has the rights of this user, and its network",
		)
		_, err = c.run(ctx)
		return lacks, err
	}
	request, err := json.Marshal(c.task)
	if err != nil {
		return nil, err
	}
	for i, l := range locks(nil) {
		p, err := c.start(ctx, request, l)
		if err == nil {
			_, err = p.wait(ctx, c)
			return lacks, err
		}
		if !forbidden(err) {
			return lacks, err
		}
		lacks = append(lacks, []string{
			"namespaces are not permitted here: the process that reads git objects has this host's network",
			"another user is not permitted here: the process that reads git objects has the rights of pullet",
			"no process can be started: " + err.Error(),
		}[i])
	}
	return lacks, &ChildError{"cannot be started"}
}
