//! Dependency cycles between the folders and files of the crate.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::Sources;

/// The parts of a folder and the other parts of the same folder that they use. A part is a file, or
/// a folder with everything below it; the file `mod.rs` of the folder itself is the part `mod`.
pub(crate) type Graph = BTreeMap<String, BTreeSet<String>>;

/// The graph of each folder, by its path. The use of a re-exported name counts as a use of the
/// module that defines it.
pub(crate) fn graphs(sources: &Sources) -> BTreeMap<String, Graph> {
    let mut graphs: BTreeMap<String, Graph> = BTreeMap::new();
    for source in &sources.0 {
        for used in source.uses.iter().filter(|used| !used.is_re_export) {
            let target = &sources.module_of(&used.target).module;
            let common = source.module.iter().zip(target).take_while(|(a, b)| a == b).count();
            if source.module == *target {
                continue;
            }
            let part =
                |module: &[String]| module.get(common).cloned().unwrap_or_else(|| "mod".to_owned());
            let graph = graphs.entry(source.module[..common].join("/")).or_default();
            graph.entry(part(&source.module)).or_default().insert(part(target));
        }
    }
    graphs
}

/// The parts that belong to a cycle: each group uses each other, directly or not.
pub(crate) fn cycles(graph: &Graph) -> Vec<BTreeSet<String>> {
    let reached = |from: &String| {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(part) = open.pop() {
            for next in graph.get(part).into_iter().flatten() {
                if reached.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        reached
    };
    let reached: BTreeMap<&String, BTreeSet<String>> =
        graph.keys().map(|part| (part, reached(part))).collect();
    let mut cycles: Vec<BTreeSet<String>> = Vec::new();
    for (part, others) in &reached {
        if !others.contains(*part) || cycles.iter().any(|cycle| cycle.contains(*part)) {
            continue;
        }
        let back = |other: &&String| reached.get(other).is_some_and(|it| it.contains(*part));
        cycles.push(others.iter().filter(back).cloned().collect());
    }
    cycles
}
