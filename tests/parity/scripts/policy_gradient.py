"""REINFORCE and an actor-critic step with fixed weights and recorded actions."""
import numpy as np
import tensorflow as tf

r = np.random.RandomState(5)


class ActorCritic(tf.keras.Model):
    def __init__(self, num_actions, num_hidden_units):
        super().__init__()
        self.common = tf.keras.layers.Dense(num_hidden_units, activation="relu")
        self.actor = tf.keras.layers.Dense(num_actions)
        self.critic = tf.keras.layers.Dense(1)

    def call(self, inputs):
        x = self.common(inputs)
        return self.actor(x), self.critic(x)


eps = np.finfo(np.float32).eps.item()


def get_expected_return(rewards, gamma, standardize=True):
    n = tf.shape(rewards)[0]
    returns = tf.TensorArray(dtype=tf.float32, size=n)
    rewards = tf.cast(rewards[::-1], dtype=tf.float32)
    discounted_sum = tf.constant(0.0)
    discounted_sum_shape = discounted_sum.shape
    for i in tf.range(n):
        reward = rewards[i]
        discounted_sum = reward + gamma * discounted_sum
        discounted_sum.set_shape(discounted_sum_shape)
        returns = returns.write(i, discounted_sum)
    returns = returns.stack()[::-1]
    if standardize:
        returns = (returns - tf.math.reduce_mean(returns)) / (tf.math.reduce_std(returns) + eps)
    return returns


huber_loss = tf.keras.losses.Huber(reduction="sum")


def compute_loss(action_probs, values, returns):
    advantage = returns - values
    action_log_probs = tf.math.log(action_probs)
    actor_loss = -tf.math.reduce_sum(action_log_probs * advantage)
    critic_loss = huber_loss(values, returns)
    return actor_loss + critic_loss


model = ActorCritic(2, 12)
model(np.zeros((1, 4), "float32"))
model.set_weights([r.uniform(-0.4, 0.4, w.shape).astype("float32") for w in model.get_weights()])
optimizer = tf.keras.optimizers.Adam(learning_rate=0.01)


@tf.function
def train_step(states, actions, rewards):
    with tf.GradientTape() as tape:
        logits, values = model(states)
        probs = tf.nn.softmax(logits)
        chosen = tf.gather(probs, actions, batch_dims=1)
        returns = get_expected_return(rewards, 0.9)
        loss = compute_loss(tf.expand_dims(chosen, 1), values, tf.expand_dims(returns, 1))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


print(get_expected_return(tf.constant([1.0, 0.0, 2.0]), 0.5, standardize=False).numpy())
for episode in range(5):
    length = 6 + episode % 2
    states = r.uniform(-1, 1, (length, 4)).astype("float32")
    actions = r.randint(0, 2, length)
    rewards = r.uniform(0, 1, length).astype("float32")
    loss = train_step(tf.constant(states), tf.constant(actions), tf.constant(rewards))
    print(f"episode {episode}: loss {float(loss):.3f}")
logits, value = model(tf.ones((1, 4)))
action = tf.random.categorical(logits, 1)[0, 0]
print(action.dtype.name, int(action) in (0, 1), f"{float(tf.nn.softmax(logits)[0, 0]):.3f}", f"{float(value[0, 0]):.3f}")
