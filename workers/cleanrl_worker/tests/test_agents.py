"""The networks of our ppo: their layers, their initialisation, and which one an environment gets."""

import gymnasium
import pytest
import torch
from cleanrl_worker.agents import MinigridAgent, MinigridCNN, MLPAgent, SeparateAgent, agent_name, make_agent, recognise
from cleanrl_worker.wrappers.observations import CELLS, check_actions, for_agent
from mosaic_sdk.config import ConfigError
from torch import nn

ALL = [MinigridAgent(7), MLPAgent(4, 2), SeparateAgent(4, 2)]


def layers(module):
    """Every layer without children, in order, as a string."""
    return [str(part) for part in module.modules() if not list(part.children())]


def linear(inputs, outputs):
    return f"Linear(in_features={inputs}, out_features={outputs}, bias=True)"


def conv(inputs, outputs):
    return f"Conv2d({inputs}, {outputs}, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))"


def test_the_minigrid_cnn_has_three_convolutions_and_a_linear_layer():
    assert layers(MinigridCNN()) == [
        *(conv(3, 32), "ReLU()", conv(32, 64), "ReLU()", conv(64, 64), "ReLU()"),
        *("Flatten(start_dim=1, end_dim=-1)", linear(3136, 128)),
    ]


def test_the_minigrid_cnn_turns_a_batch_of_bytes_into_128_features():
    cells = torch.randint(0, 11, (5, 7, 7, 3), dtype=torch.uint8)

    assert MinigridCNN()(cells).shape == (5, 128)


def test_the_minigrid_cnn_sees_channels_first_and_values_between_0_and_1():
    seen = []
    cnn = MinigridCNN()
    cnn.layers[0].register_forward_pre_hook(lambda layer, inputs: seen.append(inputs[0]))
    cells = torch.zeros(1, 7, 7, 3, dtype=torch.uint8)
    cells[0, 2, 5] = torch.tensor([255, 51, 0], dtype=torch.uint8)

    cnn(cells)

    assert seen[0].shape == (1, 3, 7, 7)
    assert torch.equal(seen[0][0, :, 2, 5], torch.tensor([1.0, 0.2, 0.0]))


def test_the_minigrid_agent_has_two_separate_heads_over_one_cnn():
    agent = MinigridAgent(7)

    assert layers(agent.actor) == [linear(128, 128), "ReLU()", linear(128, 7)]
    assert layers(agent.critic) == [linear(128, 128), "ReLU()", linear(128, 1)]
    assert sum(isinstance(part, MinigridCNN) for part in agent.modules()) == 1


def test_the_mlp_agent_has_a_shared_trunk_and_two_heads():
    agent = MLPAgent(4, 2)

    assert layers(agent) == [
        *(linear(4, 64), "Tanh()", linear(64, 64), "Tanh()"),
        *(linear(64, 2), linear(64, 1)),
    ]


def test_cleanrls_agent_shares_nothing_between_actor_and_critic():
    agent = SeparateAgent(4, 2)

    for head, outputs in ((agent.critic, 1), (agent.actor, 2)):
        assert layers(head) == [linear(4, 64), "Tanh()", linear(64, 64), "Tanh()", linear(64, outputs)]


@pytest.mark.parametrize(
    ("requested", "shape", "is_curriculum", "name"),
    [
        ("auto", (4,), False, "cleanrl"),
        ("auto", (4,), True, "mlp"),
        ("auto", (7, 7, 3), True, "minigrid"),
        ("mlp", (4,), False, "mlp"),
        ("cleanrl", (4,), True, "cleanrl"),
    ],
)
def test_the_network_is_chosen_by_the_observations_unless_it_is_named(requested, shape, is_curriculum, name):
    assert agent_name(requested, shape, is_curriculum) == name


@pytest.mark.parametrize(("requested", "shape"), [("minigrid", (4,)), ("mlp", (7, 7, 3)), ("auto", (84, 84, 4))])
def test_a_network_that_does_not_accept_the_observations_is_refused(requested, shape):
    with pytest.raises(ConfigError, match="observations of"):
        agent_name(requested, shape)


@pytest.mark.parametrize(
    ("agent", "name"), [(MinigridAgent(7), "minigrid"), (MLPAgent(4, 2), "mlp"), (SeparateAgent(4, 2), "cleanrl")]
)
def test_a_network_is_recognised_by_the_names_of_its_weights(agent, name):
    assert recognise(agent.state_dict()) == name


@pytest.mark.parametrize("agent", ALL, ids=["minigrid", "mlp", "cleanrl"])
def test_every_layer_starts_orthogonal_and_without_bias(agent):
    for layer in agent.modules():
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            weights = layer.weight.detach().flatten(1)
            # The rows (or the columns, if there are fewer) are orthogonal and have the same length.
            short = weights if weights.shape[0] <= weights.shape[1] else weights.T
            product = short @ short.T
            length = product[0, 0]
            assert torch.allclose(product, length * torch.eye(len(short)), atol=1e-4), layer
            assert not layer.bias.detach().any(), layer


@pytest.mark.parametrize("agent", ALL, ids=["minigrid", "mlp", "cleanrl"])
def test_hidden_layers_are_scaled_by_root_2_the_actor_by_a_hundredth_and_the_critic_by_1(agent):
    found = [part for part in agent.modules() if isinstance(part, (nn.Linear, nn.Conv2d))]
    ends = [(agent.actor, 0.01), (agent.critic, 1.0)]
    last = {head[-1] if isinstance(head, nn.Sequential) else head: gain for head, gain in ends}

    for layer in found:
        norm = torch.linalg.matrix_norm(layer.weight.detach().flatten(1), ord=2)
        assert norm == pytest.approx(last.get(layer, 2**0.5), rel=1e-4)


@pytest.mark.parametrize(
    ("agent", "observations"),
    [
        (MinigridAgent(7), torch.randint(0, 11, (5, 7, 7, 3), dtype=torch.uint8)),
        (MLPAgent(4, 2), torch.randn(5, 4)),
        (SeparateAgent(4, 2), torch.randn(5, 4)),
    ],
    ids=["minigrid", "mlp", "cleanrl"],
)
def test_an_agent_returns_actions_probabilities_and_values(agent, observations):
    action, log_probability, entropy, value = agent.get_action_and_value(observations)

    assert (action.shape, log_probability.shape, entropy.shape, value.shape) == ((5,), (5,), (5,), (5, 1))
    again = agent.get_action_and_value(observations, action)
    assert torch.equal(again[0], action)
    assert torch.equal(agent.get_value(observations), value)
    assert torch.equal(agent.best_action(observations), agent.actor(agent.features(observations)).argmax(-1))


@pytest.mark.parametrize(
    ("env_id", "kind"),
    [
        ("CartPole-v1", SeparateAgent),
        ("FrozenLake-v1", SeparateAgent),
        ("MiniGrid-Empty-5x5-v0", MinigridAgent),
        ("BabyAI-GoToRedBallNoDists-v0", MinigridAgent),
    ],
)
def test_each_environment_gets_the_agent_for_its_observations(env_id, kind):
    envs = gymnasium.vector.SyncVectorEnv([lambda: for_agent(gymnasium.make(env_id))])
    observations, _ = envs.reset(seed=1)

    agent = make_agent(envs)

    assert isinstance(agent, kind)
    assert agent.get_action_and_value(torch.as_tensor(observations, dtype=torch.float32))[0].shape == (1,)
    if kind is MinigridAgent:
        assert envs.single_observation_space.shape == CELLS
    envs.close()


def test_images_are_refused_with_a_hint_at_an_algorithm_that_accepts_them():
    env = gymnasium.wrappers.AddRenderObservation if hasattr(gymnasium.wrappers, "AddRenderObservation") else None
    image_wrapper = env or gymnasium.wrappers.PixelObservationWrapper
    shown = image_wrapper(gymnasium.make("CartPole-v1", render_mode="rgb_array"))
    shown = gymnasium.wrappers.TransformObservation(shown, lambda observation: observation["pixels"])
    shown.observation_space = shown.env.observation_space["pixels"]

    with pytest.raises(ConfigError, match=r"images of shape .* Use an algorithm for images, such as ppo_atari"):
        for_agent(shown)


def test_continuous_actions_are_refused_with_a_hint_at_algorithms_that_take_them():
    space = gymnasium.make("Pendulum-v1").action_space

    with pytest.raises(ConfigError, match=r"Pendulum-v1: ppo needs discrete actions.*ppo_continuous_action"):
        check_actions("Pendulum-v1", space)
