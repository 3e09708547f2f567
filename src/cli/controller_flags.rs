//! Flags of the kube-controller-manager for predictions from manifests: an option for each flag
//! that a scenario file can set.

use clap::error::Error;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use kube_autoscaler_models::flags::{Flag, FlagValue, Flags};
use kube_lockstep_scenario::FlagValues;

/// The flags that are given.
#[derive(Clone, Debug, Default)]
pub(super) struct ControllerFlagArgs {
    pub(super) flags: FlagValues,
}

impl Args for ControllerFlagArgs {
    fn augment_args(command: Command) -> Command {
        let heading = "Flags of the kube-controller-manager, with manifests of HPAs";
        command.next_help_heading(heading).args(Flag::ALL.map(option))
    }

    fn augment_args_for_update(command: Command) -> Command {
        ControllerFlagArgs::augment_args(command)
    }
}

/// The option of a flag.
fn option(flag: Flag) -> Arg {
    let is_duration = matches!(Flags::default().get(flag), FlagValue::Duration(_));
    let option = Arg::new(flag.name())
        .long(flag.name())
        .value_name(if is_duration { "DURATION" } else { "N" })
        .help(flag.description().trim_end_matches('.'))
        .requires("filename")
        .allow_negative_numbers(true)
        .value_parser(move |value: &str| {
            FlagValues::parse(flag, value).map_err(|problem| problem.in_one_line("; "))
        });
    match flag {
        // As for `cluster start`.
        Flag::SyncPeriod => option.visible_alias("sync-period"),
        _ => option,
    }
}

impl FromArgMatches for ControllerFlagArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ControllerFlagArgs, Error> {
        let mut args = ControllerFlagArgs::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        let given = |flag: Flag| matches.get_one::<FlagValues>(flag.name()).cloned();
        self.flags.0.extend(Flag::ALL.into_iter().filter_map(given).flat_map(|values| values.0));
        Ok(())
    }
}
