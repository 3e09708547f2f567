// Package virtual runs the real, unmodified HorizontalPodAutoscaler controller of a Kubernetes
// release in virtual time, and lets another program step it over stdin and stdout.
//
// The controller, its metrics client, the informers and listers, the event broadcaster, and the API
// server's processing of HPAs (decoding, defaulting, validation, strategy) are upstream's code. The
// transport (docs/protocol.md) and the replacement of the cluster are ours: a table of objects with
// watches, a table of scales, and tables of the responses of the metrics APIs.
//
// A scenario is one testing/synctest bubble. Time passes in it only while every goroutine waits for
// time or for another goroutine of the bubble. The next request is awaited on a channel from outside
// of the bubble, which is neither, so the clock stands still until it arrives.
//
// synctest requires a *testing.T, so the host is a test binary:
//
//	go test -c -vet=off -mod=readonly -modfile=versions/v1.37.mod \
//	  -tags k1.6,k1.7,…,k1.37 -ldflags='-s -w' -o engine ./virtual
//
// and runs without arguments. The tags are cumulative, like Go's own release tags. Code that differs
// between releases is in one file for each build constraint: since_1_9_before_1_12.go applies to
// Kubernetes 1.9, 1.10 and 1.11.
package virtual
