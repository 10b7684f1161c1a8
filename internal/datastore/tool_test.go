package datastore

import (
	"errors"
	"testing"

	"go.uber.org/zap"
)

// TestToolFatal: where a tool of etcd would end the process, or panics, the operation fails.
func TestToolFatal(t *testing.T) {
	for what, does := range map[string]func(log *zap.Logger){
		"etcd: failed to commit tx": func(log *zap.Logger) { log.Fatal("failed to commit tx", zap.Error(errors.New("disk full"))) },
		"etcd: failed to open":      func(log *zap.Logger) { log.Panic("failed to open") },
	} {
		err := func() (err error) {
			defer recovered(&err)
			does(toolLog())
			return nil
		}()
		if err == nil || err.Error() != what {
			t.Errorf("%v, want %s", err, what)
		}
	}
}
