// Package recommender runs the real, unmodified recommender of the Vertical Pod Autoscaler in
// virtual time, and lets another program step it over stdin and stdout.
//
// The feeder, the cluster state, the estimators, the post-processors, the checkpoint writer, both
// garbage collections, the OOM observer and, since 1.7, the parsing of all flags are upstream's
// code. The replacement of the cluster is ours: tables of VPAs, checkpoints and pods behind
// upstream's listers and clients, a table of targets behind the two fetchers, and the response of
// the resource metrics API.
//
// A scenario is one testing/synctest bubble, as in the package virtual. The bubble's clock begins at
// the start of the year 2000; `open` says when the recommender starts. The protocol is described in
// docs/vpa.md.
//
// synctest requires a *testing.T, so the host is a test binary:
//
//	go test -c -vet=off -mod=readonly -modfile=recommender/versions/v1.8.mod \
//	  -tags vpa0.10,[…],vpa1.8 -ldflags='-s -w' -o engine ./recommender
//
// and runs without arguments. The tags are cumulative, one for each release from 0.10 on. Code that
// differs between releases is in one file for each build constraint.
//
// Up to 1.6, the flags of the recommender are registered in upstream's main package, which can't be
// imported: before_1_7.go registers them again, with upstream's names and defaults.
package recommender
