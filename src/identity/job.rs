//! What batch systems and MPI launchers tell a process of its job, by environment variables.

use serde::{Deserialize, Serialize};

use super::text::text;

/// A process's place in a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The job's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The step of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The process's number in the job, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// What the batch system calls the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// Who tells a job's id. Batch systems stand first, the likeliest before the others: Slurm, PBS and its kin, LSF, Flux, Grid
/// Engine. An MPI launcher without one of them has a name of its own for what it launched: PMIx's namespace (Open MPI of today),
/// Open MPI 4's number, which is the same, and what PMI-2 calls it.
const IDS: [&str; 8] = [
    "SLURM_JOB_ID",
    "PBS_JOBID",
    "LSB_JOBID",
    "FLUX_JOB_ID",
    "JOB_ID",
    "PMIX_NAMESPACE",
    "OMPI_MCA_ess_base_jobid",
    "PMI_JOBID",
];
/// Who tells a rank. An MPI launcher stands before Slurm: in a batch script that calls mpirun, Slurm's number is the
/// script's own, 0 on all ranks.
const RANKS: [&str; 5] = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "FLUX_TASK_RANK", "SLURM_PROCID"];
/// Who tells how many ranks there are. Slurm's variable of a step, and not of the allocation: a batch script is alone.
const SIZES: [&str; 4] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "FLUX_JOB_SIZE", "SLURM_STEP_NUM_TASKS"];

/// Slurm's own steps (of batch scripts, interactive shells, what joined from outside) have numbers from here on.
const FIRST_SPECIAL_STEP: u32 = 0xffff_fff0;

impl Job {
    /// What the variables of a process say; `variable` tells the value of one.
    pub fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let found = |name: &str| text(&variable(name)?);
        let rank = |name: &&str| found(name)?.parse().ok();
        Self {
            id: IDS.iter().find_map(|name| found(name)),
            step: found("SLURM_STEP_ID"),
            rank: RANKS.iter().find_map(rank),
            node: found("SLURMD_NODENAME"),
        }
    }

    /// The variable that is to tell this process's rank and holds no number, with its value, if no other tells it.
    pub fn misread_rank(variable: impl Fn(&str) -> Option<String>) -> Option<(&'static str, String)> {
        let found = |name: &str| text(&variable(name)?);
        let is_known = RANKS.iter().any(|name| found(name).is_some_and(|value| value.parse::<u32>().is_ok()));
        let misread = RANKS.iter().find_map(|name| Some((*name, found(name)?)));
        misread.filter(|_| !is_known)
    }

    /// Whether the variables of a process say that it is one of several ranks, of which each would record itself.
    /// `variable` tells the value of one.
    pub fn has_ranks(variable: impl Fn(&str) -> Option<String>) -> bool {
        let number = |name: &&str| variable(name)?.trim().parse::<u32>().ok();
        match SIZES.iter().find_map(number) {
            Some(size) => size > 1,
            // PMIx alone tells a rank and no size. In a step that srun began, Slurm's number of tasks is the step's; in the
            // script of a batch job, which is in no such step, it is the allocation's.
            None => {
                let is_in_step = number(&"SLURM_STEP_ID").is_some_and(|step| step < FIRST_SPECIAL_STEP);
                number(&"PMIX_RANK").is_some()
                    || is_in_step && number(&"SLURM_NTASKS").is_some_and(|size| size > 1)
            }
        }
    }

    /// Nothing is known of a job.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(variables: &[(&str, &str)]) -> Job {
        let value = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        Job::of_environment(|name| value(name).map(str::to_owned))
    }

    #[test]
    fn slurm_tells_all() {
        let found = job(&[
            ("SLURM_JOB_ID", "4711"),
            ("SLURM_STEP_ID", "0"),
            ("SLURM_PROCID", "3"),
            ("SLURMD_NODENAME", "n2"),
        ]);
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(found, Job { id: some("4711"), step: some("0"), rank: Some(3), node: some("n2") });
    }

    #[test]
    fn an_mpi_launcher_knows_ranks_better() {
        assert_eq!(job(&[("SLURM_PROCID", "0"), ("OMPI_COMM_WORLD_RANK", "5")]).rank, Some(5));
        assert_eq!(job(&[("PMI_RANK", "2")]).rank, Some(2));
        assert_eq!(job(&[("PMIX_RANK", "x"), ("PMI_RANK", "7")]).rank, Some(7));
    }

    #[test]
    fn without_a_batch_system_the_launcher_names_the_job() {
        let id = |variables: &[(&str, &str)]| job(variables).id;
        let some = |text: &str| Some(text.to_owned());
        // As mpirun of Open MPI 4.1 sets them, of which older ones have no namespace.
        let open_mpi =
            [("PMIX_NAMESPACE", "14483457"), ("PMIX_RANK", "1"), ("OMPI_MCA_ess_base_jobid", "14483457")];
        assert_eq!(id(&open_mpi), some("14483457"));
        assert_eq!(id(&open_mpi[2..]), some("14483457"));
        assert_eq!(id(&[("PMI_JOBID", "7.0"), ("PMI_RANK", "1")]), some("7.0"));
        // Within a batch job that has a name, and steps beside it, launchers' names are others' business.
        let in_slurm =
            [("PMIX_NAMESPACE", "slurm.pmix.4711.0"), ("SLURM_JOB_ID", "4711"), ("PMI_JOBID", "4711.0")];
        assert_eq!(id(&in_slurm), some("4711"));
        // MPICH's says of ranks how many they are, and nothing of their job.
        assert_eq!(id(&[("PMI_FD", "8"), ("PMI_RANK", "1"), ("PMI_SIZE", "2")]), None);
    }

    #[test]
    fn a_batch_script_is_no_rank() {
        let has_ranks = |variables: &[(&str, &str)]| {
            Job::has_ranks(|name| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(!has_ranks(&[("SLURM_JOB_ID", "7"), ("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")]));
        let interactive = ("SLURM_STEP_ID", "4294967290");
        assert!(!has_ranks(&[interactive, ("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")]));
        assert!(has_ranks(&[("SLURM_STEP_ID", "0"), ("SLURM_PROCID", "0"), ("SLURM_NTASKS", "2")]));
        assert!(!has_ranks(&[("SLURM_STEP_ID", "0"), ("SLURM_NTASKS", "1")]));
        assert!(has_ranks(&[("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "8")]));
        assert!(!has_ranks(&[("PMIX_RANK", "0"), ("SLURM_STEP_NUM_TASKS", "1")]));
        assert!(has_ranks(&[("OMPI_COMM_WORLD_SIZE", "2"), ("SLURM_STEP_NUM_TASKS", "1")]), "orted's step");
        assert!(has_ranks(&[("PMIX_RANK", "3")]) && has_ranks(&[("PMI_SIZE", " 2")]) && !has_ranks(&[]));
    }

    #[test]
    fn a_rank_that_is_no_number_is_noticed_where_no_other_tells_it() {
        let misread = |variables: &[(&str, &str)]| {
            let found = Job::misread_rank(|name| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            });
            found.map(|(name, value)| format!("{name}={value}"))
        };
        assert_eq!(misread(&[("SLURM_PROCID", "abc")]).as_deref(), Some("SLURM_PROCID=abc"));
        assert_eq!(misread(&[("PMIX_RANK", "x"), ("PMI_RANK", "7")]), None);
        assert_eq!((misread(&[("SLURM_PROCID", " ")]), misread(&[])), (None, None));
    }

    #[test]
    fn nothing_is_made_up() {
        assert!(job(&[("SLURM_JOB_ID", " "), ("PMI_RANK", "-1")]).is_empty());
        assert_eq!(job(&[("PBS_JOBID", &"9".repeat(9999))]).id.map(|id| id.len()), Some(256));
    }
}
