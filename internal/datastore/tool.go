package datastore

import (
	"fmt"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// toolLog is the log of etcd's tools, which tell in errors what is wrong. Where they would end the process, which a
// silent log of zap does without a word, they panic: see recovered.
func toolLog() *zap.Logger {
	return zap.New(zapcore.NewNopCore(), zap.WithFatalHook(zapcore.WriteThenPanic))
}

// recovered makes an error of a panic, which is how etcd's tools answer some damaged files. It has to be deferred.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("etcd: %v", p)
	}
}
