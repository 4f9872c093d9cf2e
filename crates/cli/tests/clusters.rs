//! docs/clusters.md: its commands run, its scripts are scripts, and its manifests are what Kubernetes takes.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use support::{Place, Ran, wat};

/// The page's blocks of code in a language.
fn blocks(language: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/clusters.md");
    let text = fs::read_to_string(page).unwrap();
    let begins = format!("```{language}\n");
    text.split(&begins).skip(1).map(|rest| rest.split_once("```").unwrap().0.to_owned()).collect()
}

#[test]
fn the_first_example_does_what_the_page_says() {
    let records: String = (0..50).map(|i| format!("{{\"number\": {i}}}\n")).collect();
    let place = Place::new().with("score.wasm", wat!("echo")).with("big.jsonl", &records);
    let gpu_run = Path::new(env!("CARGO_BIN_EXE_gpu-run")).parent().unwrap();
    let path = format!("{}:{}", gpu_run.display(), std::env::var("PATH").unwrap());
    let mut script = Command::new("bash");
    script.args(["-e", "-c", &blocks("sh")[0]]).current_dir(place.path());
    let ran: Ran = script.env("PATH", path).env("GPU_RUN_CACHE", "off").output().unwrap().into();
    ran.gives(0, "").says(&["out.txt has 50 records of 2 shards, 0 failed"]);
    assert_eq!(fs::read_to_string(place.path().join("out.txt")).unwrap(), records);
}

#[test]
fn its_scripts_are_scripts() {
    let scripts = blocks("sh");
    assert_eq!(scripts.len(), 4);
    for script in scripts {
        let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        let said = bash.wait_with_output().unwrap();
        assert!(said.status.success() && said.stderr.is_empty(), "{}", String::from_utf8_lossy(&said.stderr));
    }
    // What Slurm would do with the array: as many tasks as there are shards, from 0.
    let array = blocks("sh").swap_remove(2);
    assert!(
        array.starts_with("#!/bin/bash\n#SBATCH ") && array.contains("--array=0-63%") && array.contains("SHARDS=64\n")
    );
}

/// The part of Kubernetes' API, `batch/v1`, that the page uses. Other fields are mistakes.
mod api {
    use super::*;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    pub(super) struct Job {
        pub(super) api_version: String,
        pub(super) kind: String,
        pub(super) metadata: Named,
        pub(super) spec: JobSpec,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    pub(super) struct JobSpec {
        pub(super) completion_mode: Option<CompletionMode>,
        pub(super) completions: Option<u32>,
        pub(super) parallelism: Option<u32>,
        pub(super) backoff_limit: Option<u32>,
        pub(super) backoff_limit_per_index: Option<u32>,
        pub(super) pod_failure_policy: PodFailurePolicy,
        pub(super) template: PodTemplate,
    }

    #[derive(Deserialize, PartialEq)]
    pub(super) enum CompletionMode {
        Indexed,
        NonIndexed,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct PodFailurePolicy {
        pub(super) rules: Vec<Rule>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    pub(super) struct Rule {
        pub(super) action: Action,
        pub(super) on_exit_codes: Option<OnExitCodes>,
        pub(super) on_pod_conditions: Option<Vec<PodCondition>>,
    }

    #[derive(Deserialize, PartialEq)]
    pub(super) enum Action {
        Count,
        FailIndex,
        FailJob,
        Ignore,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    pub(super) struct OnExitCodes {
        pub(super) container_name: Option<String>,
        pub(super) operator: Operator,
        pub(super) values: Vec<i32>,
    }

    #[derive(Deserialize, PartialEq)]
    pub(super) enum Operator {
        In,
        NotIn,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct PodCondition {
        #[serde(rename = "type")]
        pub(super) kind: String,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct PodTemplate {
        pub(super) spec: PodSpec,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    pub(super) struct PodSpec {
        pub(super) restart_policy: String,
        #[serde(default, rename = "terminationGracePeriodSeconds")]
        pub(super) _termination_grace_period_seconds: Option<u32>,
        pub(super) containers: Vec<Container>,
        pub(super) volumes: Vec<Volume>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    pub(super) struct Container {
        pub(super) name: String,
        pub(super) image: String,
        #[serde(default, rename = "workingDir")]
        pub(super) _working_dir: Option<String>,
        pub(super) command: Vec<String>,
        #[serde(default)]
        pub(super) args: Vec<String>,
        #[serde(default)]
        pub(super) resources: Resources,
        pub(super) volume_mounts: Vec<VolumeMount>,
    }

    #[derive(Default, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Resources {
        pub(super) limits: BTreeMap<String, u32>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    pub(super) struct VolumeMount {
        pub(super) name: String,
        pub(super) mount_path: String,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    pub(super) struct Volume {
        pub(super) name: String,
        #[serde(rename = "persistentVolumeClaim")]
        pub(super) _persistent_volume_claim: Claim,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    pub(super) struct Claim {
        #[serde(rename = "claimName")]
        pub(super) _claim_name: String,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Named {
        pub(super) name: String,
    }
}

/// What the API server checks beyond fields and their kinds.
fn check(job: &api::Job) {
    assert_eq!((&*job.api_version, &*job.kind), ("batch/v1", "Job"));
    let is_label = |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !name.starts_with('-');
    let (spec, pod) = (&job.spec, &job.spec.template.spec);
    assert!(is_label(&job.metadata.name) && pod.containers.iter().all(|container| is_label(&container.name)));
    assert_eq!(pod.restart_policy, "Never", "a podFailurePolicy asks for it");
    let is_indexed = spec.completion_mode == Some(api::CompletionMode::Indexed);
    assert!(!is_indexed || spec.completions.is_some() && spec.parallelism.is_some_and(|pods| pods > 0));
    assert!(is_indexed || spec.backoff_limit_per_index.is_none());
    for rule in &spec.pod_failure_policy.rules {
        assert!(rule.action != api::Action::FailIndex || spec.backoff_limit_per_index.is_some());
        assert!(rule.on_exit_codes.is_some() != rule.on_pod_conditions.is_some(), "exactly one of the two");
        if let Some(codes) = &rule.on_exit_codes {
            let is_there = |name: &String| pod.containers.iter().any(|container| container.name == *name);
            assert!(codes.container_name.as_ref().is_none_or(is_there));
            assert!(codes.values.windows(2).all(|pair| pair[0] < pair[1]), "in order, and none twice");
            assert!(codes.operator == api::Operator::NotIn || !codes.values.contains(&0));
        }
        assert!(rule.on_pod_conditions.iter().flatten().all(|condition| condition.kind == "DisruptionTarget"));
    }
    for mount in pod.containers.iter().flat_map(|container| &container.volume_mounts) {
        assert!(pod.volumes.iter().any(|volume| volume.name == mount.name) && mount.mount_path.starts_with('/'));
    }
    assert!(pod.containers.iter().all(|container| container.image.contains('/')));
}

#[test]
fn its_manifests_are_jobs_that_retry_what_is_worth_it() {
    let jobs: Vec<api::Job> = blocks("yaml").iter().map(|text| serde_saphyr::from_str(text).unwrap()).collect();
    let [map, merge] = &jobs[..] else { panic!("{} manifests", jobs.len()) };
    jobs.iter().for_each(check);
    let container = &map.spec.template.spec.containers[0];
    assert_eq!(container.args, ["--shard", &format!("$(JOB_COMPLETION_INDEX)/{}", map.spec.completions.unwrap())]);
    assert_eq!(container.resources.limits, BTreeMap::from([("nvidia.com/gpu".to_owned(), 1)]));
    assert_eq!(
        (&container.command[..2], container.command.last().unwrap().as_str()),
        (&["gpu-run".into(), "map".into()][..], "--resume")
    );
    assert_eq!(merge.spec.template.spec.containers[0].command, ["gpu-run", "merge", "/shared/out.txt"]);
    assert!(map.spec.backoff_limit_per_index.unwrap() > 0 && merge.spec.backoff_limit.unwrap() > 0);
    for (job, action) in [(map, api::Action::FailIndex), (merge, api::Action::FailJob)] {
        let mut final_codes = job.spec.pod_failure_policy.rules.iter().filter(|rule| rule.action == action);
        let codes = final_codes.next().unwrap().on_exit_codes.as_ref().unwrap();
        assert!(codes.operator == api::Operator::In && codes.values == [1, 2]);
    }
}

#[test]
fn its_table_has_the_codes_of_the_reference() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let reference = fs::read_to_string(root.join("docs/reference.md")).unwrap();
    let page = fs::read_to_string(root.join("docs/clusters.md")).unwrap();
    assert!(reference.contains("\n| 75 | map, merge | ") && page.contains("\n| 75 | "));
}
