module k8s.io/metrics
